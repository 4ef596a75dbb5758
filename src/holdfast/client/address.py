"""Where a server is, and how long to wait for it: checked before anything is loaded that could speak to it."""

from __future__ import annotations

from urllib.parse import urlsplit

from holdfast.errors import InvalidInput

SCHEMES = ("http", "https")
MAX_SECONDS = 86_400.0


def checked_url(url: object, field: str) -> str:
    """A server's address, without a slash at its end. What else may stand in a URL is refused, and never shown."""
    if not isinstance(url, str):
        raise InvalidInput(field, f"expected text, got {type(url).__name__}")
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url.strip():
        raise InvalidInput(field, "is no address of a server; write it like http://127.0.0.1:8010")
    if "@" in parts.netloc:
        raise InvalidInput(field, "holds a name or password; give the key as `key`, or as HOLDFAST_KEY, instead")
    if parts.query or parts.fragment:
        raise InvalidInput(field, "holds a query or a fragment; give the address alone, like http://127.0.0.1:8010")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def checked_seconds(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_SECONDS:
        raise InvalidInput(field, f"must be a number of seconds above 0 and up to {MAX_SECONDS:,.0f}")
    return float(value)
