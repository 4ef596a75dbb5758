"""The control plane: which memory serves whom, what is asked of it, and what it did and cost.

Every verb here is a request behind the same gate as the runtime's. `memory` asks whoever serves the caller, through
`asking`: our own store beneath the gate, or somebody outside through `outside`, whose answers `checking` looks at.
"""
