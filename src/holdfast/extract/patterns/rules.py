"""The form of an extraction rule: a phrasing, the sentence it becomes, and the slot that the sentence fills.

A rule's phrasing is matched at the beginning of a clause (anywhere in the sentence, if `anywhere`; up to the end of the
sentence, if `across`). The name of each group selects the reader of its words (`values.READERS`); digits at the end of
a name only keep two groups apart. Template and key are filled with the values read. To add a language, add a
`Language`: nothing else needs to change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


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

    pattern: re.Pattern[str]
    template: str
    key: str
    since: Since = Since.ALWAYS
    needs: Needs = Needs.NOTHING
    replaces: bool = False
    anywhere: bool = False
    across: bool = False
    ahead: bool = False
    ends: str = ""


@dataclass(frozen=True, slots=True)
class Language:
    """`opening` finds sentences worth reading, `doubt` those not meant as facts; `nobody` is an unnamed speaker."""

    nobody: str
    opening: re.Pattern[str]
    doubt: re.Pattern[str]
    rules: tuple[ExtractionRule, ...]
    _by_head: Mapping[str, tuple[ExtractionRule, ...]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_head", _index(self.rules))

    def rules_for(self, clause: str) -> tuple[ExtractionRule, ...]:
        """Return the rules whose phrasing may begin as the clause does, in their order."""
        head = _HEAD.match(clause)
        return self._by_head.get(head.group().casefold() if head else "", self._by_head[""])


# First words of phrasings. A clause is compared only with rules that begin with its first word, or with any word.
_HEAD = re.compile(r"[\w'-]+")
_FIRST_CHOICE = re.compile(r"([\w'-]+)(?= |$)|\(\?:([^()]*)\)(?= )")


def _heads(rule: ExtractionRule) -> frozenset[str]:
    """Return the first words of a phrasing; none if any word may come first."""
    found = _FIRST_CHOICE.match(rule.pattern.pattern)
    if found is None:
        return frozenset()
    firsts = [_HEAD.match(choice) for choice in (found[1] or found[2]).split("|")]
    return frozenset(first.group().casefold() for first in firsts if first) if all(firsts) else frozenset()


def _index(rules: Iterable[ExtractionRule]) -> dict[str, tuple[ExtractionRule, ...]]:
    entries = [(rule, _heads(rule)) for rule in rules if not rule.anywhere]
    every = {head for _, heads in entries for head in heads} | {""}
    return {each: tuple(rule for rule, heads in entries if not heads or each in heads) for each in every}


def compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_PIECE = re.compile(r"\(\?P<\w+>|\(\?<[!=]|\\.|(?P<choice>\((?!\?))|<(?P<open>\w+)=|<(?P<name>\w+)>|(?P<close>>)")


def phrasing(pattern: str) -> re.Pattern[str]:
    """Compile a phrasing: `(a|b)` is a choice that reads nothing, `<name>` a value, `<name=a|b>` a value of a form."""
    return compile_pattern(_PIECE.sub(_expand, pattern))


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
