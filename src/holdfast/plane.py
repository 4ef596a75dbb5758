"""Deprecated: the control plane's classes moved to `holdfast.control_api`."""

import warnings

from holdfast.control_api import AsyncControlPlane, ControlPlane, PlaneOptions

__all__ = ["AsyncControlPlane", "ControlPlane", "PlaneOptions"]

warnings.warn("holdfast.plane moved to holdfast.control_api", DeprecationWarning, stacklevel=2)
