"""The control plane's verbs: bindings, memory calls, hooks, jobs, the operation log and costs.

Every verb passes the same gate (`perform`) as the runtime's. `memory` sends a call to the provider that serves the
caller through `asking`: our own store inside the gate, or an external provider through the bulkhead in `outside`, whose
responses `checking` validates.
"""
