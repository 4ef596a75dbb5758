"""Opens a company's control plane on a store, by the same rules as a memory."""

from __future__ import annotations

import os
from typing import Any

from holdfast.domain.location import is_server_url
from holdfast.errors import InvalidInput
from holdfast.opening import Opening, Options, validate_location

PlaneOptions = Options


async def open_control_plane(location: str | os.PathLike[str], options: PlaneOptions) -> dict[str, Any]:
    """Open the store; return the constructor arguments of a control plane. There is no client for a server's yet."""
    if is_server_url(validate_location(location)):
        raise InvalidInput(
            "location",
            "is the address of a server; call its routes under /companies/…/memory, or open the store itself",
        )
    service, actor, space = await Opening(location, options).open_store()
    return {"service": service, "actor": actor, "space": space}
