"""Classify sentences of plain English: a wish to have something kept, to have it forgotten, or to know something.

Patterns, and no understanding: a sentence that matches none is `OTHER`. For the rule-based model (`RuleModel`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from holdfast.domain.visible_text import one_line

_MOST_CHARS = 20_000
_BOUNDARY = re.compile(r"(?<!\b(?:Mr|Ms|Dr|St)\.)(?<!\bMrs\.)(?<=[.!?])[\"”')]*\s+|(?<=[。！？])|\n+")

_QUESTION = re.compile(
    r"(?:(?:and|so|but|ok|okay|well|now|hey|please)[,\s]+)*"
    r"(?:what|who|whom|whose|where|when|which|why|how|do|does|did|is|are|am|was|were|can|could|will|would|should|has"
    r"|tell\s+me|remind\s+me|show\s+me"
    r"|i\s+(?:wonder|want\s+to\s+know|need\s+to\s+know|forgot|do\s+not\s+know|don['’]t\s+know)(?=\s+\w))\b",
    re.IGNORECASE,
)
# Openings before the statement itself.
_OPENING = re.compile(
    r"(?:(?:hi|hello|hey|hey\s+there|hi\s+there|good\s+(?:morning|evening)|actually|well|also|oh|so|and|by\s+the\s+way"
    r"|btw|sorry|no|yes|ok|okay)[,!:]+\s*)+(?=\S)",
    re.IGNORECASE,
)
# About the speaker, but only for the moment: nothing to keep.
_PASSING = re.compile(
    r"i\s+(?:do\s+not|don['’]t)\s+know\W*$"
    r"|i\s+(?:want|need|think|guess|hope|mean|see|wonder|must|should|would|can|cannot|can['’]t|have\s+to)\b"
    r"|i['’](?:d|ll)\b",
    re.IGNORECASE,
)
_KEEP = re.compile(
    r"(?:(?:please|ok|okay|hey|and)[,\s]+)*(?P<kindly>(?:can|could|will|would)\s+you\s+(?:please\s+)?(?=remember\s+that\b))?"
    r"(?:remember|note|keep\s+in\s+mind|write\s+down|save|(?:don['’]t|do\s+not|never)\s+forget)\b(?:\s+that\b|\s*:)?\s+",
    re.IGNORECASE,
)
_CALL_ME = re.compile(r"(?:please\s+)?call\s+me\s+\S", re.IGNORECASE)
_FORGET = re.compile(
    r"(?:please\s+)?(?:forget|delete|remove)\s+(?:about\s+|that\s+|the\s+(?:fact|note)\s+(?:that\s+|about\s+)?)?(?=\S)",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"(?:it|this|that|him|her|them|never\s+mind)\W*", re.IGNORECASE)
_OF_OURSELVES = re.compile(r"(?:i|i['’](?:m|ve|d|ll)|my|we|we['’](?:re|ve|d|ll)|our)\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(
    r"\b(?:i|my|mine|me|we|our|ours|us|i['’](?:m|ve|d|ll)|we['’](?:re|ve|d|ll))\b", re.IGNORECASE
)
_TELLING = re.compile(
    r"\S.*?\s(?:is|are|was|were|has|have|had|lives?|likes?|loves?|hates?|prefers?|works?|means?|starts?|ends?|costs?"
    r"|needs?|uses?|runs?|happens|moved|arrives?|leaves?|opens?|closes?|must|should|cannot|will|comes?|goes)\s+\S",
    re.IGNORECASE,
)
# Facts with one value: a new statement replaces the old one.
_ONLY_ONE = re.compile(
    r"(?:(?:my|our|the)\s+(?:\S+\s+){0,6}?(?:(?:is|are)\s+(?:called|named)"
    r"|(?:name|birthday|address|number|email|age|favou?rite\s+\S+|favou?rite\s+\S+\s+\S+)\s+(?:is|are))"
    r"|call\s+me|i\s+live\s+in|i\s+work\s+(?:at|for|as))\b",
    re.IGNORECASE,
)
SELF_NAMED = re.compile(r"[Ii](?:['’]m|\s+am)\s+[A-Z][^\W\d_]+\W*$")
_ENDED = (".", "!", "?", "…", "。", "！", "？", "”", '"')


class Wish(Enum):
    KEEP = auto()
    FORGET = auto()
    KNOW = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class ClassifiedSentence:
    """`text` is the content to keep, forget or know, without the words that ask for it."""

    wish: Wish
    text: str


def classify_sentences(prompt: str) -> list[ClassifiedSentence]:
    parts = (one_line(part) for part in _BOUNDARY.split(prompt[:_MOST_CHARS]) if part)
    return [_classify(part) for part in parts if part]


def _classify(text: str) -> ClassifiedSentence:
    if (opening := _OPENING.match(text)) and len(text) > opening.end():
        text = text[opening.end() :]
    match = _KEEP.match(text)
    if text.endswith(("?", "？")) and not (match and match["kindly"]):
        return ClassifiedSentence(Wish.KNOW, text)
    if match and (content := text[match.end() :].strip(" .!?")):
        return ClassifiedSentence(Wish.KEEP, _tidy(content))
    if (match := _FORGET.match(text)) and not _NOTHING.fullmatch(text[match.end() :]):
        return ClassifiedSentence(Wish.FORGET, text[match.end() :])
    if _QUESTION.match(text):
        return ClassifiedSentence(Wish.KNOW, text)
    if _PASSING.match(text):
        return ClassifiedSentence(Wish.OTHER, text)
    if SELF_NAMED.match(text):
        return ClassifiedSentence(Wish.KEEP, _tidy(text))
    if len(text.split()) > 2 and (_CALL_ME.match(text) or _OF_OURSELVES.match(text) or _TELLING.match(text)):
        return ClassifiedSentence(Wish.KEEP, _tidy(text))
    return ClassifiedSentence(Wish.OTHER, text)


def is_question(text: str) -> bool:
    return _classify(text).wish is Wish.KNOW


def _tidy(text: str) -> str:
    """Add a capital letter at the start and a full stop at the end."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith(_ENDED) else ".")


def is_about_speaker(text: str) -> bool:
    """True if the speaker is the topic."""
    return _FIRST_PERSON.search(text) is not None


def slot(text: str) -> str | None:
    """Return the single-valued slot that a sentence fills, such as `my dog is called`; None if it fills none."""
    match = _ONLY_ONE.match(text)
    return None if match is None else " ".join(match.group().lower().split())
