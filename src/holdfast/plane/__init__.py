"""The control plane: which memory serves whom, memory through it, and what it did and cost.

with holdfast.ControlPlane.open("memory.db", space="acme") as plane:
    plane.upsert("Releases go out on Tuesdays.", agent="builder")
    print(plane.query("When do we release?", agent="builder").result.snippets)
"""

from holdfast.plane.opening import PlaneOptions
from holdfast.plane.planes import AsyncControlPlane, ControlPlane

__all__ = ["AsyncControlPlane", "ControlPlane", "PlaneOptions"]
