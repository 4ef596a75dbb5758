"""The verbs of `MemoryRuntime`. Each carries the options its runtime was opened with."""
