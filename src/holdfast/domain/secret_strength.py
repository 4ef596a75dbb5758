"""How hard a token is to guess. Random ones pass; words, repetitions and runs of neighbours do not."""

from __future__ import annotations

import re
from itertools import pairwise

# Pairs of characters. A random token has almost as many as characters; 12 of letters and digits are about 70 bits.
LEAST_UNPREDICTABLE = 12
_COMMON = (
    "password passwd secret token operator holdfast memory gateway change admin root user test demo example default"
    " local dev prod staging key letmein welcome qwertyuiop qwerty asdfgh hunter company server please this agent"
    " service replace insert your here random string long enough"
)
_WORDS = re.compile(_COMMON.replace(" ", "|"))


def find_weakness(secret: str) -> str | None:
    """Return why a secret is easy to guess, to follow its name; None if it is not."""
    if len(_unpredictable_pairs(secret)) < LEAST_UNPREDICTABLE:
        return "is short, or repeats itself"
    if len(_unpredictable_pairs(_WORDS.sub(" ", secret.lower()))) < LEAST_UNPREDICTABLE:
        return "is made of common words"
    return None


def _unpredictable_pairs(text: str) -> set[str]:
    """Return the pairs of neighbouring characters, but for those that follow each other, as in aa, ab and 21."""
    return {a + b for a, b in pairwise(text) if abs(ord(a) - ord(b)) > 1 and " " not in (a, b)}
