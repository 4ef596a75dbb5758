"""Find the few known skills that a new procedure may repeat, by the ranking of search, whether they are on or off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from holdfast.domain.access import Grant
from holdfast.domain.ids import MemoryId
from holdfast.domain.memory import MemoryRecord, Plane
from holdfast.domain.results import HitKind
from holdfast.domain.runtime_skills import SkillContent
from holdfast.domain.scope import Scope
from holdfast.domain.skill_lineage import find_repeats, is_near_duplicate
from holdfast.ports import Reader, SearchOptions
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core
from holdfast.runtime.skills.stored_skill import StoredSkill, skill_of

_NEAREST = 8
_OPTIONS = SearchOptions(
    top_k=_NEAREST, kind=HitKind.MEMORY, planes=frozenset({Plane.PROCEDURAL}), quarantined=True, min_score=None
)


class NearSkills(NamedTuple):
    """The known skills near a procedure, and the place of the one before it in the same write that it repeats."""

    known: tuple[MemoryId, ...] = ()
    repeats: int | None = None

    def ids(self, written: Sequence[MemoryId | None]) -> tuple[MemoryId, ...]:
        """Return the memories of both. `written` are those of the write so far; None where nothing is stored."""
        repeated = None if self.repeats is None else written[self.repeats]
        return self.known if repeated is None else (*self.known, repeated)


NOTHING_NEAR = NearSkills()


def find_near(core: Core, reader: Reader, scope: Scope, text: str, entry: indexing.IndexedText) -> list[MemoryRecord]:
    """Return the skills of exactly this scope that are near the text, the nearest first."""
    vector = np.frombuffer(entry.vectors[0], "<f2").astype(np.float32) if entry.vectors else None
    ranked = core.searcher.rank(reader.index, scope, text, vector, _OPTIONS)
    records = reader.records.fetch([scored.number for scored in ranked.best])
    found = (records.get(scored.number) for scored in ranked.best)
    return [record for record in found if isinstance(record, MemoryRecord) and record.scope == scope]


def near_duplicate(reader: Reader, scope: Scope, content: SkillContent, near: Iterable[MemoryId]) -> StoredSkill | None:
    """Return the first of these skills that says the same as the content, as it is now."""
    skills = (skill_of(reader, memory_id) for memory_id in near)
    same = (each for each in skills if each is not None and each.memory.scope == scope)
    return next((each for each in same if is_near_duplicate(each.content, content)), None)


async def near_procedures(
    core: Core, grant: Grant, scope: Scope, candidates: Sequence[tuple[Plane, str, indexing.IndexedText]]
) -> list[NearSkills]:
    """Return the skills near each candidate that is on the procedural plane, with its text and index data."""
    near = [NOTHING_NEAR] * len(candidates)
    places = [place for place, (plane, _, _) in enumerate(candidates) if plane is Plane.PROCEDURAL]
    if not places:
        return near

    def find(reader: Reader) -> list[tuple[MemoryId, ...]]:
        given = (candidates[place] for place in places)
        return [tuple(memory.id for memory in find_near(core, reader, scope, text, entry)) for _, text, entry in given]

    repeats = find_repeats([SkillContent.read(candidates[place][1], {}) for place in places])
    for place, known, before in zip(places, await core.store.read(grant, find), repeats, strict=True):
        near[place] = NearSkills(known, None if before is None else places[before])
    return near
