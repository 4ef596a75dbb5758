"""Opens a company's control plane on a store or a server, by the same rules as a memory."""

from __future__ import annotations

import os
from typing import Any

from holdfast.opening import Opening, Options

PlaneOptions = Options


async def open_control_plane(location: str | os.PathLike[str], options: PlaneOptions) -> dict[str, Any]:
    """Open it; return the constructor arguments of a control plane."""
    service, actor, space = await Opening(location, options).open_service()
    return {"service": service, "actor": actor, "space": space}
