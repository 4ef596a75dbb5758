"""Other readings of a text: decoded, turned round, and put together again from pieces.

Each reading is text that a model might read out of the original. Nothing here decides whether a reading is a threat.
The number of readings and their size are bounded.
"""

from __future__ import annotations

import base64
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import pairwise
from urllib.parse import unquote

from holdfast.domain.lookalikes import LOOSE_TWINS

_MOST_STEPS = 3
_MOST_READINGS = 24
_MOST_DECODED_CHARS = 200_000
# Longer texts are not turned round: an entry is far shorter, and each turn is scanned in full.
_MOST_TURNED_CHARS = 20_000
_LEAST_TEXT = 6

_POINTS = re.compile(
    r"\\u(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{4}))|\\x([0-9a-fA-F]{2})|U\+([0-9a-fA-F]{4,6})\s?|\\([0-7]{3})"
)
_BYTES = re.compile(r"(?:(?:\\x|=)[0-9a-fA-F]{2})+")
_HEX = re.compile(r"(?<![0-9a-zA-Z])(?:(?:0x)?[0-9a-fA-F]{2}[\s:,;-]{0,2}){8,}+")
_DECIMALS = re.compile(r"(?<!\d)(?:\d{2,3}[\s,;]{1,2}){8,}+\d{0,3}")
_BITS = re.compile(r"(?:[01]{8}[\s,]{0,2}){6,}+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_BASE64_IN_PIECES = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{4,}+={0,2}\s{1,2}){3,}+(?:[A-Za-z0-9+/_-]++={0,2})?"
)
_BASE32 = re.compile(r"[A-Z2-7]{16,}={0,6}")

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_TURNED = _ALPHABET[13:] + _ALPHABET[:13]
_ROT13 = str.maketrans(_ALPHABET + _ALPHABET.upper(), _TURNED + _TURNED.upper())
# Words by whose steps from letter to letter a shifted alphabet is recognized, whatever the shift.
_SIGNATURES = (
    "instruction directive disregard guideline previous password ignore forget system prompt message mention"
    " conversation secret hidden rules user"
).split()

_TAG = re.compile(r"<[^<>\n]{0,40}>")
_EMPHASIS = re.compile(r"[*_~`|]+")
_WITHIN_WORD = re.compile(r"(?<=[^\W\d_])[-.·](?=[^\W\d_])")
_CONCATENATION = re.compile(r"[\"']\s{0,3}[+,.&]\s{0,3}[\"']")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_APART = re.compile(r"(?<=\b\w)\s(?=\w\b)")
_LEAST_APART = 8


def readings(text: str) -> Iterator[str]:
    """Yield the text first, then what it decodes to, at most three steps deep."""
    seen, level, chars = {text}, [text], 0
    yield text
    for _ in range(_MOST_STEPS):
        level = [made for each in level for made in _decode(each)]
        level = [made for made in dict.fromkeys(level) if made not in seen]
        for made in level:
            chars += len(made)
            if len(seen) > _MOST_READINGS or chars > _MOST_DECODED_CHARS:
                return
            seen.add(made)
            yield made


def turned_readings(text: str) -> Iterator[str]:
    """Yield the text backwards, put together from pieces, and with its alphabet shifted back."""
    if len(text) > _MOST_TURNED_CHARS:
        return
    lines = [line.split() for line in text.splitlines()]
    forms = [
        text[::-1],
        "\n".join(" ".join(word[::-1] for word in words) for words in lines),
        "\n".join(" ".join(words[::-1]) for words in lines),
        join_pieces(text),
    ]
    forms += _shift_back(text)
    yield from (form for form in dict.fromkeys(forms) if form != text)


def join_pieces(text: str) -> str:
    """Remove from words what pulls them apart: markup, signs, blanks between letters; divide CamelCase."""
    plain = unicodedata.normalize("NFKC", text.translate(LOOSE_TWINS))
    plain = _EMPHASIS.sub("", _CONCATENATION.sub("", _TAG.sub("", plain)))
    plain = _WITHIN_WORD.sub("", _CAMEL.sub(" ", plain))
    return _APART.sub("", plain) if len(_APART.findall(plain)) >= _LEAST_APART else plain


def _decode(text: str) -> Iterator[str]:
    """Yield the text with its escapes resolved, and texts that are written in it in another base."""
    for resolved in (
        html.unescape(text),
        unquote(text, errors="replace"),
        _POINTS.sub(_char, text),
        _BYTES.sub(lambda found: _read(_from_hex, found.group()) or found.group(), text),
    ):
        if resolved != text:
            yield resolved
    for pattern, decode in _BASES:
        decoded = [_read(decode, found) for found in pattern.findall(text)]
        if any(decoded):
            yield "\n".join(filter(None, decoded))


def _char(found: re.Match[str]) -> str:
    number = int(found[5], 8) if found[5] else int(found[1] or found[2] or found[3] or found[4], 16)
    return chr(number) if number <= 0x10FFFF else found.group()


def _read(decode: Callable[[str], bytes], coded: str) -> str:
    """Decode; return the result if it is text, else an empty string."""
    try:
        data = decode(coded)
        text = data.decode("utf-16-le" if data[1:2] == b"\0" else "utf-8")
    except ValueError:  # not this base, or not text
        return ""
    shown = sum(char.isprintable() or char.isspace() for char in text)
    return text if len(text) >= _LEAST_TEXT and shown == len(text) else ""


def _from_base64(coded: str) -> bytes:
    stem = re.sub(r"[\s=]", "", coded).replace("-", "+").replace("_", "/")
    return base64.b64decode(stem + "=" * (-len(stem) % 4), validate=True)


def _from_base32(coded: str) -> bytes:
    stem = coded.rstrip("=")
    return base64.b32decode(stem + "=" * (-len(stem) % 8))


def _from_hex(coded: str) -> bytes:
    return bytes.fromhex(re.sub(r"0x|[^0-9a-fA-F]", "", coded))


def _from_numbers(coded: str) -> bytes:
    return bytes(int(number) for number in re.findall(r"\d+", coded))


def _from_bits(coded: str) -> bytes:
    return bytes(int(byte, 2) for byte in re.findall("[01]{8}", coded))


_BASES: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (_BASE64, _from_base64),
    (_BASE64, lambda coded: _from_base64(coded.translate(_ROT13))),
    (_BASE64_IN_PIECES, _from_base64),
    (_BASE32, _from_base32),
    (_HEX, _from_hex),
    (_DECIMALS, _from_numbers),
    (_BITS, _from_bits),
)


def _steps(letters: str) -> str:
    """Return the steps from each letter to the next, which no shift of the alphabet changes."""
    numbers = letters.encode("ascii")
    return "".join(chr((after - before) % 26) for before, after in pairwise(numbers))


_MARKS = tuple(
    (_steps(turned), turned[0], turned is not word)
    for word in _SIGNATURES
    for turned in (word, word.translate(str.maketrans(_ALPHABET, _ALPHABET[::-1])))
)


def _shift_back(text: str) -> Iterator[str]:
    """Yield the text with its alphabet shifted back, or turned round and shifted, where a signature is found."""
    letters = re.sub("[^a-z]", "", text.lower())
    steps = _steps(letters)
    shifts = {
        ((ord(letters[at]) - ord(first)) % 26, mirrored)
        for mark, first, mirrored in _MARKS
        if (at := steps.find(mark)) >= 0
    } - {(0, False)}
    for by, mirrored in sorted(shifts):
        alphabet = _ALPHABET[by:] + _ALPHABET[:by]
        plain = _ALPHABET[::-1] if mirrored else _ALPHABET
        yield text.translate(str.maketrans(alphabet + alphabet.upper(), plain + plain.upper()))
