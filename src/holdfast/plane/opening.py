"""From a path or an address to a company's control plane: opened as a memory is, and by the same rules."""

from __future__ import annotations

import os
from typing import Any

from holdfast.domain.location import is_served
from holdfast.errors import InvalidInput
from holdfast.opening import Opening, Options, checked_location

PlaneOptions = Options


async def opened(location: str | os.PathLike[str], options: PlaneOptions) -> dict[str, Any]:
    """What a control plane is made of. A server's is behind its routes: a client for them there is not yet."""
    if is_served(checked_location(location)):
        raise InvalidInput(
            "location",
            "is a server's address; its control plane is under /companies/…/memory; or open the store itself",
        )
    service, actor, space = await Opening(location, options).store()
    return {"service": service, "actor": actor, "space": space}
