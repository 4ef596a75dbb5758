"""Agent Skills that a host has mounted: their summaries, the report of their folders, and their rank for a query.

Nobody vouches for a skill's text. It is shown as data: shortened, on one line, without hidden characters. Only the host
reads the rest of a skill, and runs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from holdfast.domain.field_copies import copy_fields
from holdfast.domain.presentable import Presentable
from holdfast.domain.ranking import FAIR_MATCH, best_first, bm25, bm25_idf, saturate
from holdfast.domain.repetition import read_statement

SUMMARY_CHARS = 720
SNIPPET_CHARS = 420
MAX_HITS = 4
CUT = " […]"
# Reasons why a list of skills is empty.
NO_SKILL_DIRECTORY = "no_agent_skill_directory"
DIRECTORIES_UNAVAILABLE = "agent_skill_directories_unavailable"
NO_SKILL = "no_agent_skill"
NO_MATCHING_SKILL = "no_match"

# A word of the name or the description counts as often as so many of the instructions.
_STATED_WEIGHT = 2
# Words are rated as if there were so many other skills, none of which has them: few skills say little of a word.
_OTHER_SKILLS = 32
# One matching word is enough for a short query; a longer one needs one more for each so many of its words.
_WORDS_PER_MATCH = 12
# Words that many descriptions have, and that say nothing about their subject.
_COMMON = (
    "use using used user users skill skills agent task tasks help helps need needs want wants ask asks request can when"
    " what how which where who why should could must may not please make work works following"
)
_FNV_START, _FNV_PRIME, _FNV_MASK = 0xCBF29CE484222325, 0x100000001B3, 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class AgentSkill(Presentable):
    """The summary of a skill. `directory` is the mounted folder, of which only the last name is shown.

    `scripts`, `references` and `assets` count the files of these folders. The fingerprint changes with the document and
    with these counts. Only the host can run a skill.
    """

    name: str
    description: str
    body_summary: str
    directory: str
    path: str
    scripts: int
    references: int
    assets: int
    fingerprint: str
    host_execution_required: bool = True


@dataclass(frozen=True, slots=True)
class AgentSkillHit(AgentSkill):
    """A skill that matches a query. `snippet` begins with its description."""

    snippet: str = ""
    score: float = 0.0

    @property
    def id(self) -> str:
        return f"{self.directory}/{self.path}"


@dataclass(frozen=True, slots=True)
class ProjectedAgentSkill(Presentable):
    """A matching skill and its line in a block: `chars` is the length of the shown text, 0 if there was no room."""

    name: str
    directory: str
    path: str
    fingerprint: str
    chars: int
    cut: bool
    host_execution_required: bool = True


@dataclass(frozen=True, slots=True)
class AgentSkillDirectory(Presentable):
    """A mounted folder, and its number of usable and of invalid skills."""

    directory: str
    skills: int
    invalid: int


@dataclass(frozen=True, slots=True)
class InvalidAgentSkill(Presentable):
    """A folder that is not a usable skill, and the reason. The path `.` is the mounted folder itself."""

    directory: str
    path: str
    problem: str


@dataclass(frozen=True, slots=True)
class AgentSkillDirectoryReport(Presentable):
    """The mounted folders and the skills in them. `reason` says why there are no entries."""

    directories: tuple[AgentSkillDirectory, ...] = ()
    entries: tuple[AgentSkill, ...] = ()
    invalid: tuple[InvalidAgentSkill, ...] = ()
    reason: str | None = None


NO_DIRECTORIES = AgentSkillDirectoryReport(reason=NO_SKILL_DIRECTORY)
ScanSkills: TypeAlias = Callable[[], AgentSkillDirectoryReport]


def shorten_text(line: str, max_chars: int) -> str:
    """Cut a line to this length, with a mark at its end if something was cut."""
    return line if len(line) <= max_chars else line[: max_chars - len(CUT)].rstrip() + CUT


def fnv1a64(parts: Iterable[bytes]) -> str:
    """Return the FNV-1a hash of parts, each after its length in eight bytes, as 16 hexadecimal digits."""
    value = _FNV_START
    for part in parts:
        for byte in len(part).to_bytes(8, "big") + part:
            value = ((value ^ byte) * _FNV_PRIME) & _FNV_MASK
    return f"{value:016x}"


# --- ranking ----------------------------------------------------------------------------------------------------------


class _SkillWords(NamedTuple):
    """The content words of a skill, weighed, and those of its name and its description."""

    counts: Counter[str]
    stated: frozenset[str]


def rank_skills(skills: Sequence[AgentSkill], query: str, limit: int = MAX_HITS) -> tuple[AgentSkillHit, ...]:
    """Return the skills that match the words of a query, the best first.

    A word of the name or the description is a match, two words of the instructions are another.
    """
    words = sorted(_content_words(query))
    if not words or not skills:
        return ()
    read = [_read_skill(skill) for skill in skills]
    counts = np.array([[each.counts[word] for each in read] for word in words], np.float32)
    stated = np.array([[word in each.stated for each in read] for word in words])
    matches = np.where(stated, 1.0, np.where(counts > 0, 0.5, 0.0)).sum(axis=0)
    lengths = np.array([each.counts.total() for each in read], np.float32)
    idf = bm25_idf((counts > 0).sum(axis=1).astype(np.float32), len(skills) + _OTHER_SKILLS)
    scores = saturate(bm25(counts, idf, lengths, float(lengths.mean())), FAIR_MATCH)
    among = np.flatnonzero(matches >= 1 + len(words) // _WORDS_PER_MATCH)
    best = among[best_first(scores[among], among, limit)] if len(among) else among
    return tuple(_hit(skills[at], float(scores[at])) for at in best)


def reason_for_none(report: AgentSkillDirectoryReport, hits: Sequence[AgentSkillHit]) -> str | None:
    """Return the reason why no skill matches; None if one does."""
    return None if hits else report.reason or NO_MATCHING_SKILL


def _hit(skill: AgentSkill, score: float) -> AgentSkillHit:
    snippet = shorten_text(f"{skill.description} {skill.body_summary}", SNIPPET_CHARS)
    return copy_fields(AgentSkillHit, skill, snippet=snippet, score=score)


@lru_cache(maxsize=1_024)
def _read_skill(skill: AgentSkill) -> _SkillWords:
    stated = _content_words(f"{skill.name}. {skill.description}")
    counts = Counter({word: count * _STATED_WEIGHT for word, count in stated.items()})
    return _SkillWords(counts + _content_words(skill.body_summary), frozenset(stated))


def _content_words(text: str) -> Counter[str]:
    statement = read_statement(text)
    words = Counter((*statement.stems, *statement.numbers))
    for word in _common_words():
        words.pop(word, None)
    return words


@lru_cache(maxsize=1)
def _common_words() -> frozenset[str]:
    return frozenset(read_statement(_COMMON).stems)
