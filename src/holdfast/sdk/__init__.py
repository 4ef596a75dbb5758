"""The runtime for hosts: `MemoryRuntime`, its requests and its reports."""
