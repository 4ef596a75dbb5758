"""Where a store is, as it may be shown: a path as it is, a URL without what is secret in it."""

from __future__ import annotations

import re

# Up to the last @ there is: a password that should have been quoted and was not is no less secret.
_PASSWORD = re.compile(r"(?<=://)([^@/?#:]*):.*@", re.DOTALL)
_SECRET_PARAMETER = re.compile(r"([?&](?:password|sslpassword)=)[^&#]*", re.IGNORECASE)


def shown(location: str) -> str:
    """Fit for a message, a log or a screen."""
    if "://" not in location:
        return location
    return _SECRET_PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1:***@", location))
