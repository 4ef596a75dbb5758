"""The words of a refusal: they never repeat a value that the caller sent, because it may be a key."""

from __future__ import annotations

import re

# A value in an error is quoted by `repr`: not after a letter, like an apostrophe. A long one is cut, with its end.
_QUOTED = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$))""", re.DOTALL)


def withhold_quoted(text: str) -> str:
    """Withhold the values that an error quotes: the caller sent them, and they may be a key."""
    return _QUOTED.sub("'…'", text)
