"""The control plane's verbs: bindings, memory calls, hooks, jobs, the operation log and costs.

Every verb passes the same gate as the runtime's (`runtime/gate.py`). `memory` sends a call through `dispatch` to the
provider that serves the caller: our own store inside the gate, or an external provider through `bulkhead`, whose
responses `response_validation` checks.
"""
