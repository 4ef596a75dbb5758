"""Summaries of skills: their rank for a query, and their fingerprint."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.agent_skills import MAX_HITS, SNIPPET_CHARS, AgentSkill, fnv1a64, rank_skills


def skill(name: str, description: str, summary: str = "Follow these steps.") -> AgentSkill:
    return AgentSkill(name, description, summary, ".../skills", name, 0, 0, 0, "0" * 16)


SKILLS = [
    skill("pdf-forms", "Extracts text and tables from PDF files and fills forms. Use when the user mentions PDFs."),
    skill("release-notes", "Writes release notes from merged changes.", "List features first, then fixed bugs."),
    skill("letters", "Formal letters to banks and authorities.", "Begin with the date and the address."),
    skill("translation", "Übersetzt Texte ins Deutsche.", "部署服务器到生产环境"),
]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Can you fill this PDF form?", ["pdf-forms"]),
        ("extract a table", ["pdf-forms"]),
        ("Write a letter to my bank.", ["letters", "release-notes"]),
        ("which bugs and features are in the list?", ["release-notes"]),
        ("übersetze das ins Deutsche", ["translation"]),
        ("服务器", ["translation"]),
        ("When does the user want to use this skill?", []),
        ("Where does Ana live?", []),
        ("", []),
    ],
)
def test_a_skill_is_found_by_the_words_of_its_summary(query: str, names: list[str]) -> None:
    hits = rank_skills(SKILLS, query)
    assert [hit.name for hit in hits] == names
    assert all(0 < hit.score < 1 for hit in hits)


def test_one_word_in_common_with_a_long_text_is_no_match() -> None:
    words = "the train to Porto left late because snow covered every track between both stations near that old bridge"
    assert rank_skills(SKILLS, f"{words}, said my bank") == ()
    assert [hit.name for hit in rank_skills(SKILLS, f"{words}; write letters to the bank")] == ["letters"]


@given(st.lists(st.sampled_from(SKILLS), max_size=12), st.text(max_size=60))
def test_hits_are_few_short_and_the_best_first(skills: list[AgentSkill], query: str) -> None:
    hits = rank_skills(skills, f"pdf letters {query}")
    assert len(hits) <= MAX_HITS
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(len(hit.snippet) <= SNIPPET_CHARS and hit.host_execution_required for hit in hits)


def reference_fnv(data: bytes) -> int:
    return reduce(lambda value, byte: (value ^ byte) * 0x100000001B3 % 2**64, data, 0xCBF29CE484222325)


def test_the_fingerprint_is_fnv_1a_of_parts_with_their_lengths() -> None:
    assert reference_fnv(b"foobar") == 0x85944171F73967E8  # a published vector
    parts = [b"ab", b"", b"c"]
    assert int(fnv1a64(parts), 16) == reference_fnv(b"".join(len(part).to_bytes(8, "big") + part for part in parts))
    assert len({fnv1a64([b"ab", b"c"]), fnv1a64([b"a", b"bc"]), fnv1a64([b"abc"]), fnv1a64([b"abc", b""])}) == 4
