"""Where a store is, as it may be shown: a path as it is, a URL without what is secret in it."""

from __future__ import annotations

import re
from urllib.parse import unquote

from holdfast.errors import InvalidInput

# Up to the last @ there is: a password that should have been quoted and was not is no less secret.
_PASSWORD = re.compile(r"(?<=://)([^@/?#:]*):.*@", re.DOTALL)
_PARAMETER = re.compile(r"([?&])([^=&#]*)=([^&#]*)")


# What else libpq takes, or a slip of the pen: no path, and it may hold a password.
_A_SERVER = re.compile(r"^(postgres(ql)?|https?):|(^|\s)(host|hostaddr|dbname|password|user)\s*=", re.IGNORECASE)


def refuse_mistyped(location: str) -> None:
    """A server's address that is no URL must not be taken for a path, nor be shown."""
    if "://" not in location and _A_SERVER.search(location):
        raise InvalidInput(
            "location",
            "looks like a server's address; write it as postgresql://user:password@host/name, or http://host:8010",
        )


def shown(location: str) -> str:
    """Fit for a message, a log or a screen."""
    if "://" not in location:
        return location
    return _PARAMETER.sub(_parameter, _PASSWORD.sub(r"\1:***@", location))


def _parameter(found: re.Match[str]) -> str:
    before, name, value = found.groups()
    return f"{before}{name}={'***' if 'password' in unquote(name).lower() else value}"
