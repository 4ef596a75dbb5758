"""The control plane's Python API: bindings, memory calls, hooks, jobs, the operation log and costs of a company.

with holdfast.ControlPlane.open("memory.db", space="acme") as plane:
    plane.upsert("Releases go out on Tuesdays.", agent="builder")
    print(plane.query("When do we release?", agent="builder").result.snippets)
"""

from holdfast.plane.opening import PlaneOptions
from holdfast.plane.planes import AsyncControlPlane, ControlPlane

__all__ = ["AsyncControlPlane", "ControlPlane", "PlaneOptions"]
