"""Put a question about one speaker into the first person, as the speaker would ask it of their own memory."""

from __future__ import annotations

import re
from collections.abc import Collection

_BEFORE = {"does": "do", "is": "am", "has": "have"}
_AFTER = {**_BEFORE, "hasn't": "haven't", "doesn't": "don't", "isn't": "am not"}
# After these, the speaker is "me".
_PREPOSITIONS = frozenset("about against around as at by for from in like of on to toward towards upon with".split())
_PRONOUNS = {"he": "I", "she": "I", "him": "me", "his": "my", "her": "my", "himself": "myself", "herself": "myself"}
_TOKEN = re.compile(r"[\w'’]+|[^\w'’]+")


def in_first_person(question: str, speaker: str, others: Collection[str]) -> str | None:
    """Return the question as the speaker asks it; None if it does not name the speaker alone.

    Pronouns of the third person are taken to be the speaker's. The grammar is that of simple questions.
    """
    tokens = _TOKEN.findall(question.replace("’", "'"))
    if not any(_names(token, speaker) for token in tokens):
        return None
    if any(_names(token, other) for token in tokens for other in others):
        return None
    words = [at for at, token in enumerate(tokens) if token[0].isalnum()]
    for place, at in enumerate(words):
        before = words[place - 1] if place else None
        after = words[place + 1] if place + 1 < len(words) else None
        tokens[at] = _own_word(tokens, at, before, speaker)
        if tokens[at] != "I":
            continue
        if before is not None and tokens[before].casefold() in _BEFORE:
            tokens[before] = _in_case_of(tokens[before], _BEFORE[tokens[before].casefold()])
        elif after is not None:
            tokens[after] = _AFTER.get(tokens[after], tokens[after])
    return "".join(tokens)


def _names(token: str, name: str) -> bool:
    return token.removesuffix("'s").removesuffix("'") == name


def _own_word(tokens: list[str], at: int, before: int | None, speaker: str) -> str:
    token = tokens[at]
    if not _names(token, speaker):
        return _PRONOUNS.get(token, token)
    if token != speaker:
        return _in_case_of("Xx" if at == 0 else "x", "my")
    return "me" if before is not None and tokens[before].casefold() in _PREPOSITIONS else "I"


def _in_case_of(model: str, word: str) -> str:
    return word.capitalize() if model[:1].isupper() else word
