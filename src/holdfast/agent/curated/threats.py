"""Scan text for prompt injection: text that is an attack on the agent that reads it.

A curated entry goes into the system prompt, so it is scanned before it is stored, and again before it is shown. The
patterns are in `patterns.py`; this module brings a text into the forms that they match: without disguised letters,
without separators between letters, and decoded. A scan does not prove that a text is harmless. It blocks known attacks;
besides, the prompt says that notes are not instructions, and entries cannot leave their place in it.
"""

from __future__ import annotations

import base64
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from urllib.parse import unquote

from holdfast.agent.curated.patterns import LOUD, OVERRIDES, PHRASES, POSES, PROMPT, SHAPES, UNSPACED

MAX_SCANNED_CHARS = 65_536

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
)
_PICTURE = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_JOINING = "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff"
_FLAGS = "|".join(
    "🏴" + "".join(chr(0xE0000 + ord(char)) for char in f"{name}\x7f") for name in ("gbeng", "gbsct", "gbwls")
)
# Legitimate uses in scripts and emoji: one such character at a time, after the one that it belongs to.
_IN_PLACE = re.compile(
    f"{_FLAGS}"
    f"|(?<=[{_PICTURE}\ufe0f])\u200d(?=[{_PICTURE}])"
    f"|(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}\\s.,;:!?)]|$)"
    f"|(?<=[{_PICTURE}0-9#*])[\ufe0e\ufe0f]"
    "|(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180d]"
)
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")
_MARKS = re.compile("[\u200e\u200f\u061c]")

_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u065f\u0670]")
_APOSTROPHES = re.compile(r"(?<=\w)['’`´](?=\w)")
# Letters that look like Latin ones, and framed letters.
_LOOKALIKES: dict[int, int | str] = {
    **str.maketrans("аеіјоѕрсухһԁԛԝӏвкмнтгп", "aeijospcyxhdqwlbkmhtrn"),
    **str.maketrans("αεικνορτυωχγηɑɡոսօց", "aeikvoptuwxynagnuog"),
    **str.maketrans("ıłđøᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "ildoabcdefghijklmnoprstuvwyz"),
    **{block + at: chr(ord("a") + at) for block in (0x1F150, 0x1F170, 0x1F1E6) for at in range(26)},
}
_DIGITS = str.maketrans("013457@$!|", "oieastasil")
_ESCAPES = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_HEX = re.compile(r"\b(?:[0-9a-fA-F]{2}){12,}\b")


@lru_cache(maxsize=256)
def threat_in(text: str) -> str:
    """Return why the text must not reach a prompt, as a verb phrase ("tries to …"); empty if no threat was found."""
    # Some characters normalize to many others.
    if len(text) > MAX_SCANNED_CHARS or len(unicodedata.normalize("NFKC", text)) > MAX_SCANNED_CHARS:
        return f"is longer than {MAX_SCANNED_CHARS:,} characters"
    if _has_invisible(text):
        return "holds invisible characters"
    return next((why for reading in _decoded_forms(text) if (why := _find_threat(reading))), "")


def fold_text(text: str) -> str:
    """Remove differences of width, font, case and accent; letters of other scripts stay as they are."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold()))
    return unicodedata.normalize("NFC", plain)


def _has_invisible(text: str) -> bool:
    rest = _IN_PLACE.sub("", text)
    if _RIGHT_TO_LEFT.search(rest):
        rest = _MARKS.sub("", rest)
    return _INVISIBLE.search(rest) is not None


def _decoded_forms(text: str) -> Iterator[str]:
    """Yield the text, and its decoded forms, one step deep."""
    yield text
    for decoded in (
        html.unescape(text),
        unquote(text, errors="replace"),
        _ESCAPES.sub(lambda found: chr(int(found[1] or found[2], 16)), text),
    ):
        if decoded != text:
            yield decoded
    hidden = [_text_of(_from_base64, found) for found in _BASE64.findall(text)]
    hidden += [_text_of(bytes.fromhex, found) for found in _HEX.findall(text)]
    if any(hidden):
        yield "\n".join(filter(None, hidden))


def _find_threat(text: str) -> str:
    shapes, phrases, run_together = _tables()
    if re.search(LOUD, unicodedata.normalize("NFKC", text)):
        return POSES
    plain = fold_text(text)
    latin = plain.translate(_LOOKALIKES)
    for form in dict.fromkeys((plain, latin)):
        if why := _first_match(shapes, form) or _first_match(phrases, _words(form)):
            return why
    for form in dict.fromkeys(map(_letters, (plain, latin, latin.translate(_DIGITS)))):
        for turned in (form, form[::-1], codecs.encode(form, "rot13")):
            if why := _first_match(run_together, turned):
                return why
    return ""


def _words(text: str) -> str:
    """Return the words, each followed by one blank. Marks stay: Indian scripts write vowels with them."""
    plain = _APOSTROPHES.sub("", text)
    return " ".join("".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in plain).split()) + " "


def _letters(text: str) -> str:
    return "".join(char for char in text if unicodedata.category(char)[0] in "LM")


def _from_base64(coded: str) -> bytes:
    stem = coded.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(stem + "=" * (-len(stem) % 4), validate=True)


def _text_of(decode: Callable[[str], bytes], coded: str) -> str:
    """Decode; return the result if it is text, else an empty string."""
    try:
        return decode(coded).decode("utf-8")
    except ValueError:  # not this encoding, or not UTF-8
        return ""


# --- pattern tables, compiled on first use ----------------------------------------------------------------------------

Table = tuple[tuple[str, re.Pattern[str]], ...]


def _first_match(table: Table, text: str) -> str:
    return next((why for why, pattern in table if pattern.search(text)), "")


def _compile_tables(*tables: Mapping[str, Sequence[str]]) -> Table:
    """Compile patterns for folded text."""
    return tuple(
        (why, re.compile(fold_text("|".join(patterns)), re.MULTILINE))
        for table in tables
        for why, patterns in table.items()
    )


@cache
def _tables() -> tuple[Table, Table, Table]:
    """Compile the shapes, the phrases, and those phrases that can be recognized without blanks between words."""
    long = {why: [phrase.replace(" ", "").replace(r"\b", "") for phrase in PHRASES[why]] for why in (OVERRIDES, PROMPT)}
    return _compile_tables(SHAPES), _compile_tables(PHRASES), _compile_tables(long, UNSPACED)
