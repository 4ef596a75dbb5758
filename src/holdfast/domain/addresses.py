"""Where something is kept that lives elsewhere. We never go there; whoever reads a result may."""

from __future__ import annotations

import re

from holdfast.domain.text import checked_text
from holdfast.errors import InvalidInput

MAX_URI_CHARS = 2_048
# A browser passes over these before it looks at the scheme, and some of them within it.
_PASSED_OVER = re.compile("[\x00-\x20\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060\ufeff]+")
# What would run where it is shown, carries its own content, or reaches into the reader's machine.
_REFUSED = frozenset(
    {"about", "blob", "data", "feed", "file", "filesystem", "jar", "javascript", "livescript", "mhtml", "mocha",
     "vbscript", "view-source"}
)  # fmt: skip


def checked_address(value: object, field: str) -> str:
    """An http or https address, or any name that means nothing to whoever follows it."""
    text = checked_text(value, field, max_chars=MAX_URI_CHARS)
    scheme, colon, _ = _PASSED_OVER.sub("", text).partition(":")
    if colon and scheme.lower() in _REFUSED:
        raise InvalidInput(
            field, f"{scheme.lower()}: is not an address to follow; give one of http or https, or a name"
        )
    return text
