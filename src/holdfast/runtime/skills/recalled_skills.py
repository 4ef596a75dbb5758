"""Skills among the hits of a recall: shown as summaries, under their names. Their procedures stay in the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from holdfast.domain.memory import Plane
from holdfast.domain.results import Hit
from holdfast.domain.runtime_skills import WRITTEN, SkillContent, name_of_unnamed
from holdfast.ports import Reader


def with_summaries(hits: Iterable[Hit]) -> list[Hit]:
    """Replace the text of each skill by its summary. What was not written as a skill says itself in its own words."""
    return [replace(hit, text=_content_of(hit).summary_text) if _has_summary(hit) else hit for hit in hits]


def _has_summary(hit: Hit) -> bool:
    return hit.plane is Plane.PROCEDURAL and WRITTEN in hit.metadata


def skill_names(reader: Reader, hits: Sequence[Hit]) -> Mapping[str, str]:
    """Return the names of the skills by the ids of their memories. Call it with whole texts, not with summaries."""
    skills = [hit for hit in hits if hit.plane is Plane.PROCEDURAL]
    states = reader.skills.states([hit.id for hit in skills])
    return {
        hit.id: states[hit.id].name if hit.id in states else name_of_unnamed(hit.id, _content_of(hit)) for hit in skills
    }


def _content_of(hit: Hit) -> SkillContent:
    return SkillContent.read(hit.text, hit.metadata)
