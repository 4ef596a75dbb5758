"""The control plane's verbs: bindings, memory calls, hooks, jobs, the operation log and costs.

Every verb passes the same gate (`runtime/gate.py`) as the runtime's. `memory` sends a call to the provider that serves the
caller through `dispatch`: our own store inside the gate, or an external provider through `bulkhead`, whose responses
`response_validation` checks.
"""
