"""The verbs of `MemoryRuntime`. Each carries what its runtime was opened with."""
