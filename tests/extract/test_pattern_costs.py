"""Patterns cost time linear in the text: none repeats a repetition, and few are compared with a clause."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from string import Formatter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extract.test_rules import message

from holdfast.extract.patterns import LANGUAGES
from holdfast.extract.patterns.beginnings import MAX_CHARS, beginnings_of
from holdfast.extract.patterns.rules import ExtractionRule, Language
from holdfast.extract.phrases import reader_of
from holdfast.extract.rule_extractor import RuleExtractor
from holdfast.extract.sentences import MAX_SENTENCE_CHARS, sentences_of

RULES = [rule for language in LANGUAGES for rule in language.rules]
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
# Comparisons of a clause with patterns. Each takes time linear in the clause but for a few that look for two words.
MAX_COMPARISONS = 120


def unbounded_repeats(tree: Any) -> Iterator[Any]:
    """Yield the contents of everything in a parsed pattern that may be repeated without end."""
    for code, argument in tree:
        if code in REPEATS:
            _, most, content = argument
            if most == codes.MAXREPEAT:
                yield content
            yield from unbounded_repeats(content)
        elif code is codes.SUBPATTERN:
            yield from unbounded_repeats(argument[-1])
        elif code is codes.BRANCH:
            for option in argument[1]:
                yield from unbounded_repeats(option)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from unbounded_repeats(argument[1])


def test_no_pattern_repeats_a_repetition() -> None:
    """Nested repetitions are what makes matching exponential."""
    for rule in RULES:
        for content in unbounded_repeats(parser.parse(rule.source)):
            assert not list(unbounded_repeats(content)), rule.source


def test_every_pattern_has_few_open_parts() -> None:
    """Each open part that another follows multiplies the places to try."""
    for rule in RULES:
        assert len(list(unbounded_repeats(parser.parse(rule.source)))) <= 16, rule.source


def test_the_values_of_every_rule_have_readers_and_fill_its_sentence() -> None:
    given = {"who", "whose", "when", "said_on"}
    for rule in RULES:
        groups = rule.pattern.groupindex
        assert all(reader_of(group) for group in groups)
        named = {name for text in (rule.template, rule.key, rule.ends) for _, name, _, _ in Formatter().parse(text)}
        heads = {f"{group}_head" for group in groups}
        assert named - {None} <= given | set(groups) | heads, rule.source


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.nobody)
def test_a_clause_is_compared_with_few_patterns(language: Language) -> None:
    for rule in language.rules:
        for beginning in beginnings_of(rule.source):
            assert len(language.rules_for(f"{beginning} and so on")) <= MAX_COMPARISONS, beginning


@pytest.mark.parametrize(
    ("pattern", "beginnings"),
    [
        ("(?:i|we) own a", ("i own a", "we own a")),
        ("(?:please |ok )*stop it", ("ok ", "please ", "stop it")),
        ("my (?:old )?car", ("my car", "my old car")),
        ("i (?!never)go", ("i go",)),
        ("colou?r", ("color", "colour")),
        ("(?P<thing>.+) is", ("",)),
        ("[ab]c", ("",)),
        ("a|b", ("a", "b")),
        ("(?-i:IT) is", ("",)),
    ],
)
def test_the_beginnings_of_a_pattern_are_found(pattern: str, beginnings: tuple[str, ...]) -> None:
    assert beginnings_of(pattern) == beginnings


def words_of(rule: ExtractionRule) -> list[str]:
    return sorted(set(re.findall(r"(?<![\\\w])[a-z']{2,9}(?!\w)", rule.source)))


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_clause_that_a_pattern_matches_is_compared_with_it(data: st.DataObject) -> None:
    """The index leaves nothing out: a clause that begins otherwise than all beginnings of a pattern does not match."""
    language = data.draw(st.sampled_from(LANGUAGES))
    rule = data.draw(st.sampled_from([rule for rule in language.rules if not rule.anywhere]))
    pieces = st.sampled_from([*beginnings_of(rule.source), *words_of(rule), "a", "Ana", "7", ","])
    clause = " ".join(data.draw(st.lists(pieces, min_size=1, max_size=6)))
    if rule.pattern.match(clause):
        assert clause[:MAX_CHARS].lower().startswith(beginnings_of(rule.source))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_long_hostile_lines_are_read_to_the_end(data: st.DataObject) -> None:
    """A beginning, then words of the same pattern over and over: the worst case of a pattern that tries every place."""
    rule = data.draw(st.sampled_from(RULES))
    beginning = data.draw(st.sampled_from(beginnings_of(rule.source)))
    filler = " ".join(data.draw(st.lists(st.sampled_from([*words_of(rule), "a", "Ana", ","]), min_size=1, max_size=3)))
    line = f"{beginning} {f'{filler} ' * MAX_SENTENCE_CHARS}"[:MAX_SENTENCE_CHARS]
    text = "\n".join([line.strip()] * 40)
    compared = sum(
        len(language.rules_for(clause.text))
        for sentence in sentences_of(text)
        for clause in sentence.clauses
        for language in LANGUAGES
    )
    assert compared <= 40 * MAX_SENTENCE_CHARS * MAX_COMPARISONS
    assert isinstance(asyncio.run(RuleExtractor().extract([message(text)], None)), tuple)
