"""The form of an extraction rule: a phrasing, the sentence it becomes, and the slot that the sentence fills.

A rule's phrasing is matched at the beginning of a clause (anywhere in the sentence, if `anywhere`; up to the end of the
sentence, if `across`). The name of each group selects the reader of its words (`values.READERS`); digits at the end of
a name only keep two groups apart. Template and key are filled with the values read. To add a language, add a
`Language`: nothing else needs to change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, lru_cache

from holdfast.extract.patterns.beginnings import MAX_CHARS, beginnings_of


class Since(StrEnum):
    """The start of a fact's validity."""

    ALWAYS = "always"
    SAID = "said"  # or from the day that the clause names


class Needs(StrEnum):
    """A condition on a clause, besides its pattern."""

    NOTHING = "nothing"
    GREETING = "greeting"
    WHOLE = "whole"  # nothing after a comma may change the meaning
    PAST_DATE = "past_date"
    COMING_DATE = "coming_date"


@dataclass(frozen=True, slots=True)
class ExtractionRule:
    """One phrasing of a fact.

    `key` names the slot: a later fact with the same key replaces it. `{when}` in a template is a resolved time phrase
    with a space before it, or empty. `ends` names what is over, from the values: only a fact that holds it is replaced.
    `ahead`: a time phrase means a coming day; one with several meanings stays, with the day on which it was said.
    """

    source: str
    template: str
    key: str
    since: Since = Since.ALWAYS
    needs: Needs = Needs.NOTHING
    replaces: bool = False
    anywhere: bool = False
    across: bool = False
    ahead: bool = False
    ends: str = ""

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern; compiled on first use, since most rules are never compared with a text."""
        return compile_pattern(self.source)


class RuleIndex:
    """Rules by the beginnings of their phrasings."""

    def __init__(self, rules: Sequence[ExtractionRule]) -> None:
        self._rules = [(rule, beginnings_of(rule.source)) for rule in rules]
        self._find = lru_cache(maxsize=4096)(self._find_by_beginning)

    def find(self, clause: str) -> tuple[ExtractionRule, ...]:
        """Return the rules whose phrasing may begin as the clause does, in their order."""
        return self._find(clause[:MAX_CHARS].lower())

    def _find_by_beginning(self, start: str) -> tuple[ExtractionRule, ...]:
        return tuple(rule for rule, beginnings in self._rules if start.startswith(beginnings))


@dataclass(frozen=True, slots=True)
class Language:
    """Patterns of a language. `nobody` is an unnamed speaker.

    A sentence is worth reading if it has one of the words `openers`, or letters of the `script`. It states nothing if
    `doubt` is found in it.
    """

    nobody: str
    openers: frozenset[str]
    doubt: re.Pattern[str]
    rules: tuple[ExtractionRule, ...]
    script: re.Pattern[str] | None = None
    _index: RuleIndex = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", RuleIndex([rule for rule in self.rules if not rule.anywhere]))

    def may_state(self, sentence: str, words_of_it: frozenset[str]) -> bool:
        """Decide whether the sentence is worth reading."""
        return not self.openers.isdisjoint(words_of_it) or (
            self.script is not None and bool(self.script.search(sentence))
        )

    def rules_for(self, clause: str) -> tuple[ExtractionRule, ...]:
        """Return the rules whose phrasing may begin as the clause does, in their order."""
        return self._index.find(clause)


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@cache
def compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_PIECE = re.compile(r"\(\?P<\w+>|\(\?<[!=]|\\.|(?P<choice>\((?!\?))|<(?P<open>\w+)=|<(?P<name>\w+)>|(?P<close>>)")


def phrasing(said: str) -> str:
    """Write a phrasing as a pattern: `(a|b)` is a choice, `<name>` a value, `<name=a|b>` a value of that form."""
    return _PIECE.sub(_expand, said)


def _expand(piece: re.Match[str]) -> str:
    if piece["choice"]:
        return "(?:"
    if piece["name"]:
        return f"(?P<{piece['name']}>.+?)"
    if piece["open"]:
        return f"(?P<{piece['open']}>"
    return ")" if piece["close"] else piece.group()


def rule(
    said: str,
    template: str,
    key: str,
    since: Since = Since.SAID,
    needs: Needs = Needs.NOTHING,
    *,
    replaces: bool = False,
    anywhere: bool = False,
    across: bool = False,
    ahead: bool = False,
    ends: str = "",
) -> ExtractionRule:
    """Build a rule from its phrasing."""
    return ExtractionRule(
        phrasing(said), template, key, since, needs, replaces or bool(ends), anywhere, across, ahead, ends
    )


def rules_of(*phrasings: tuple[str, str, str]) -> tuple[ExtractionRule, ...]:
    """Build the rules of a language from (phrasing, sentence, key); a group `ended` names what is over."""
    return tuple(
        rule(
            said,
            text,
            key,
            Since.ALWAYS if key.startswith(_LASTING) else Since.SAID,
            Needs.WHOLE if "<taste>" in said else Needs.NOTHING,
            ends="{ended}" if "<ended" in said else "",
        )
        for said, text, key in phrasings
    )


# Relations that hold whenever they were stated; others begin with the statement.
_LASTING = ("name", "called", "born", "birthday", "is_from", "likes", "favourite", "allergic", "language:native")
