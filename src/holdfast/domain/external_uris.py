"""Validation of external URIs. Holdfast never follows them, but readers of a result may."""

from __future__ import annotations

import re

from holdfast.domain.checks import checked_text
from holdfast.domain.visible_text import remove_hidden
from holdfast.errors import InvalidInput

MAX_URI_CHARS = 2_048
# Browsers ignore blanks, controls and hidden characters before the scheme, and some of them within it.
_PASSED_OVER = re.compile("[\x00-\x20\x7f-\xa0\u2028\u2029]+")
# Schemes that run code, carry their own content, or read local files.
_REFUSED = frozenset(
    {"about", "blob", "data", "feed", "file", "filesystem", "jar", "javascript", "livescript", "mhtml", "mocha",
     "vbscript", "view-source"}
)  # fmt: skip


def checked_uri(value: object, field: str) -> str:
    """Return the URI, or raise `InvalidInput` if its scheme is unsafe to follow."""
    text = checked_text(value, field, max_chars=MAX_URI_CHARS)
    scheme, colon, _ = _PASSED_OVER.sub("", remove_hidden(text, anywhere=True)).partition(":")
    if colon and scheme.lower() in _REFUSED:
        raise InvalidInput(field, f"{scheme.lower()}: is not a safe scheme; give an http or https address, or a name")
    return text
