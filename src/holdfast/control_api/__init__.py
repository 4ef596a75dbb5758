"""The control plane's Python API: bindings, memory calls, hooks, jobs, the operation log and costs of a space.

with holdfast.ControlPlane.open("memory.db", space="acme") as plane:
    plane.upsert("Releases go out on Tuesdays.", agent="builder")
    print(plane.query("When do we release?", agent="builder").result.snippets)
"""

from holdfast.control_api.control_plane import AsyncControlPlane, ControlPlane
from holdfast.opening import Options as PlaneOptions

__all__ = ["AsyncControlPlane", "ControlPlane", "PlaneOptions"]
