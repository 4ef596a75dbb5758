"""Locations of stores: validation, and display without secrets."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from holdfast.errors import InvalidInput

# Up to the last @: a password with unquoted characters must be hidden, too.
_PASSWORD = re.compile(r"(?<=://)([^@/?#:]*):.*@", re.DOTALL)
_SERVED = ("http", "https")
_PARAMETER = re.compile(r"([?&])([^=&#]*)=([^&#]*)")


# Other forms that libpq accepts, or typing errors: not a path, and possibly with a password.
_A_SERVER = re.compile(
    r"^(postgres(ql)?|https?):|(^|\s)(host|hostaddr|dbname|password|user)\s*=|^[\w.-]+:\d+/?$", re.IGNORECASE
)


def refuse_mistyped_server(location: str) -> None:
    """Raise if a location looks like a server's address but is no URL. It must not be used as a path, nor shown."""
    if "://" not in location and _A_SERVER.search(location):
        raise InvalidInput(
            "location",
            "looks like a server's address; write it as postgresql://user:password@host/name, or http://host:8010",
        )


def redact_location(location: str) -> str:
    """Redact a location for messages, logs and screens."""
    if "://" not in location:
        return location
    return _PARAMETER.sub(_redact_parameter, _PASSWORD.sub(r"\1:***@", location))


def _redact_parameter(found: re.Match[str]) -> str:
    before, name, value = found.groups()
    return f"{before}{name}={'***' if 'password' in unquote(name).lower() else value}"


def is_server_url(location: str) -> bool:
    """True if it is the URL of an HTTP server instead of a store."""
    scheme, separator, _ = location.partition("://")
    return bool(separator) and scheme.strip().lower() in _SERVED


def is_valid_server_url(url: str) -> bool:
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in _SERVED and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return usable and url.isprintable() and " " not in url.strip()


def checked_url(url: object, field: str) -> str:
    """Return a server's URL without a trailing slash. Credentials, query and fragment are refused, and never shown."""
    if not isinstance(url, str):
        raise InvalidInput(field, f"expected text, got {type(url).__name__}")
    if not is_valid_server_url(url):
        raise InvalidInput(field, "is not the URL of a server; write it like http://127.0.0.1:8010")
    parts = urlsplit(url.strip())
    if "@" in parts.netloc:
        raise InvalidInput(field, "holds a name or password; give the key as `key`, or as HOLDFAST_KEY, instead")
    if parts.query or parts.fragment:
        raise InvalidInput(field, "holds a query or a fragment; remove it, as in http://127.0.0.1:8010")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
