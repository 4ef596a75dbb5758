"""The old home of the control plane's classes; they moved to `holdfast.control_api`."""

from holdfast.control_api import AsyncControlPlane, ControlPlane, PlaneOptions

__all__ = ["AsyncControlPlane", "ControlPlane", "PlaneOptions"]
