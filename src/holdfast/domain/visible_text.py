"""The one list of hidden characters, and their removal from text that a model or a terminal shows.

A hidden character leaves no mark of its own: it can carry a message that people do not see, or make a text look like
another. Emoji and several scripts need some of them, so these stay where their neighbours give them a use, one at a
time. Stored text is never changed. Every function takes time that grows with the length of the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# Soft hyphen, grapheme joiner, fillers, inherent vowels, selectors, joiners, marks of direction, blank cell, private
# use, surrogates, interlinear annotation, musical and shorthand controls, tags, and noncharacters of every plane.
_HIDDEN = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U0010ffff"
    + "".join(chr(plane + 0xFFFE) + chr(plane + 0xFFFF) for plane in range(0x10000, 0xE0000, 0x10000))
)
_PICTURE = (
    "\xa9\xae\u203c\u2049\u2100-\u214f\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030"
    "\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Letters and marks of scripts that use joiners: Arabic and its relatives, the scripts of India and their relatives.
_JOINING = (
    "\u0620-\u086f\u08a0-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18aa\u1b00-\u1bff"
    "\ua840-\ua87f\ua8e0-\ua8ff\ua980-\ua9df\uaa60-\uaa7f\uabc0-\uabff\U00011000-\U00011fff\U0001e900-\U0001e95f"
)
_AFTER_JOINER = f"[{_JOINING}\\s.,;:!?()\\[\\]«»\"'\u060c\u061b\u061f\u06d4\u0964\u0965/\u2026\u2013\u2014-]"
_IDEOGRAPH = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_FLAGS = "|".join("".join(chr(0xE0000 + ord(char)) for char in f"{name}\x7f") for name in ("gbeng", "gbsct", "gbwls"))
_IN_PLACE = "|".join(
    (
        f"(?<=[{_PICTURE}])[\ufe0e\ufe0f]",
        "(?<=[0-9#*])\ufe0f(?=\u20e3)",
        f"(?:(?<=[{_PICTURE}])|(?<=[{_PICTURE}]\ufe0f))\u200d(?=[{_PICTURE}])",
        f"(?<=[{_JOINING}])[\u200c\u200d](?:(?={_AFTER_JOINER})|\\Z)",
        # Sixteen of the 240 selectors: too few to write a letter after each ideograph.
        f"(?<=[{_IDEOGRAPH}])[\ufe00-\ufe02\U000e0100-\U000e010f]",
        "(?<=[\u1820-\u18aa])(?:[\u180b-\u180d\u180f]|\u180e(?=[\u1820\u1821]))",
        f"(?<=🏴)(?:{_FLAGS})",
    )
)
_ANY_HIDDEN = re.compile(f"[{_HIDDEN}]")
_EACH_HIDDEN = re.compile(f"(?=[{_HIDDEN}])(?:({_IN_PLACE})|.)", re.DOTALL)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Controls but tab and newline: ESC, CR, the C1 set with its one-byte CSI, and line separators.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def has_hidden(text: str, *, anywhere: bool = False) -> bool:
    """True if the text holds a hidden character out of place; with `anywhere`, also in place."""
    if text.isascii() or not _ANY_HIDDEN.search(text):
        return False
    return anywhere or any(found[1] is None for found in _EACH_HIDDEN.finditer(text))


def remove_hidden(text: str, *, anywhere: bool = False) -> str:
    """Remove the hidden characters that are out of place; with `anywhere`, all of them."""
    if text.isascii() or not _ANY_HIDDEN.search(text):
        return text
    return _ANY_HIDDEN.sub("", text) if anywhere else _EACH_HIDDEN.sub(lambda found: found[1] or "", text)


def has_unsafe_control(text: str) -> bool:
    """True if the text holds a control character other than tab and newline."""
    return _UNSAFE.search(text) is not None


def is_plain_line(text: str) -> bool:
    """True if the text is one line of which nothing is hidden."""
    return not _CONTROL.search(text) and not has_hidden(text)


def one_line(text: str) -> str:
    """Make one line of visible text, so that it cannot imitate another line or role, or hide a part of itself."""
    if not text.isprintable():
        text = _CONTROL.sub(" ", text)
    return " ".join(remove_hidden(text).split())


def escape_hidden(text: str, escape: Callable[[str], str]) -> str:
    """Escape each hidden character that is out of place, and each control but tab and newline, so that they show."""
    shown = _UNSAFE.sub(lambda found: escape(found.group()), text)
    return shown if shown.isascii() else _EACH_HIDDEN.sub(lambda found: found[1] or escape(found.group()), shown)
