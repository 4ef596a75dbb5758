"""Patterns of statements about oneself, as data: one rule per phrasing, grouped by language.

A rule's pattern is matched at the beginning of a clause (anywhere in the sentence, if `anywhere`). The name of each
group selects the reader of its words (`values.READERS`); template and key are filled with the values read. To add a
language, add a `Language`: nothing else needs to change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
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
    with a space before it, or empty.
    """

    pattern: re.Pattern[str]
    template: str
    key: str
    since: Since = Since.ALWAYS
    needs: Needs = Needs.NOTHING
    replaces: bool = False
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class Language:
    """`opening` finds sentences worth reading, `doubt` those not meant as facts; `nobody` is an unnamed speaker."""

    nobody: str
    opening: re.Pattern[str]
    doubt: re.Pattern[str]
    rules: tuple[ExtractionRule, ...]


def compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
