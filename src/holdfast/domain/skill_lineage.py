"""The history of a skill, as its revisions tell it, and whether two skills are one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from holdfast.domain.memory import MemoryRecord
from holdfast.domain.presentable import Presentable
from holdfast.domain.reconciliation import normalize_statement
from holdfast.domain.repetition import read_statement
from holdfast.domain.runtime_skills import SkillContent, SkillStatus

# Reports show so many of the newest nodes and differences; the store keeps all.
MAX_LINEAGE = 8
_DIGEST_CHARS = 10
# Two procedures are one if they share this much of their words; a new text with less is a new doctrine.
_SAME_SHARE = 0.75
_REFINED_SHARE = 0.5
_PIECE_CHARS = 2_000  # `read_statement` reads no more


class NodeDisposition(StrEnum):
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    RETIRED = "retired"


class ChangeKind(StrEnum):
    SUMMARY_REVISION = "summary_revision"
    PROCEDURE_REFINEMENT = "procedure_refinement"
    DOCTRINE_REVISION = "doctrine_revision"


@dataclass(frozen=True, slots=True)
class LineageNode(Presentable):
    """One strategy of a skill: the revisions in a row that say the same."""

    node_id: str
    strategy_digest: str
    recorded_at: datetime
    summary: str
    disposition: NodeDisposition


@dataclass(frozen=True, slots=True)
class StrategyDiff(Presentable):
    """The change from one strategy to the next."""

    recorded_at: datetime
    from_node_id: str
    to_node_id: str
    change_kind: ChangeKind
    summary: str


class Lineage(NamedTuple):
    """All nodes and differences, oldest first."""

    nodes: tuple[LineageNode, ...]
    diffs: tuple[StrategyDiff, ...]

    @property
    def newest(self) -> Lineage:
        return Lineage(self.nodes[-MAX_LINEAGE:], self.diffs[-MAX_LINEAGE:])


def strategy_digest(content: SkillContent) -> str:
    """Identify a strategy. Case and spacing do not change it."""
    parts = (content.title, content.summary, *content.procedure.splitlines())
    said = "\n".join(filter(None, map(normalize_statement, parts)))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def trace_lineage(name: str, revisions: Iterable[MemoryRecord], status: SkillStatus) -> Lineage:
    """Derive the lineage of a skill from its revisions, oldest first."""
    strategies: list[tuple[str, datetime, SkillContent, str | None]] = []
    for revision in revisions:
        content = SkillContent.of(revision)
        digest = strategy_digest(content)
        if not strategies or strategies[-1][0] != digest:
            strategies.append((digest, revision.recorded_at, content, revision.reason))
    ids = [f"{name}@{digest[:_DIGEST_CHARS]}" for digest, *_ in strategies]
    current = NodeDisposition.RETIRED if status is SkillStatus.RETIRED else NodeDisposition.ACTIVE
    dispositions = [*[NodeDisposition.SUPERSEDED] * (len(ids) - 1), current][: len(ids)]
    nodes = tuple(
        LineageNode(node_id, digest, at, content.summary_text, disposition)
        for node_id, disposition, (digest, at, content, _) in zip(ids, dispositions, strategies, strict=True)
    )
    pairs = zip(ids, ids[1:], strategies, strategies[1:], strict=False)
    diffs = tuple(
        StrategyDiff(at, earlier, later, _change_kind(before, after), reason or after.summary_text)
        for earlier, later, (_, _, before, _), (_, at, after, reason) in pairs
    )
    return Lineage(nodes, diffs)


def _change_kind(before: SkillContent, after: SkillContent) -> ChangeKind:
    if normalize_statement(before.procedure) == normalize_statement(after.procedure):
        return ChangeKind.SUMMARY_REVISION
    old, new = _read(before.procedure), _read(after.procedure)
    return ChangeKind.PROCEDURE_REFINEMENT if old.share(new) >= _REFINED_SHARE else ChangeKind.DOCTRINE_REVISION


# --- near-duplicates --------------------------------------------------------------------------------------------------


class _Words(NamedTuple):
    """The words of a procedure, without the order of its steps."""

    stems: frozenset[str]
    names: frozenset[str]
    numbers: Counter[str]
    negations: int

    def share(self, other: _Words) -> float:
        both = self.stems | other.stems
        return len(self.stems & other.stems) / len(both) if both else float(self.numbers == other.numbers)

    def is_near(self, other: _Words) -> bool:
        agree = (self.names, self.numbers, self.negations) == (other.names, other.numbers, other.negations)
        return agree and self.share(other) >= _SAME_SHARE


def is_near_duplicate(one: SkillContent, other: SkillContent) -> bool:
    """True if both are one skill in other words. Names, numbers and negations must agree; a doubt means no."""
    if normalize_statement(one.procedure) == normalize_statement(other.procedure):
        return True
    return _read(one.procedure).is_near(_read(other.procedure))


def find_repeats(contents: Sequence[SkillContent]) -> list[int | None]:
    """Return for each content the place of the one before it that it would revise, were they written in this order."""
    said = [(normalize_statement(each.procedure), _read(each.procedure)) for each in contents]
    newest: list[int] = []  # the places of the current texts of the skills
    repeats: list[int | None] = []
    for place, (text, words) in enumerate(said):
        same = (at for at, other in enumerate(newest) if said[other][0] == text or said[other][1].is_near(words))
        skill = next(same, None)
        repeats.append(None if skill is None else newest[skill])
        if skill is None:
            newest.append(place)
        else:
            newest[skill] = place
    return repeats


def _read(procedure: str) -> _Words:
    said = [read_statement(piece) for piece in _pieces(procedure)]
    return _Words(
        stems=frozenset(stem for each in said for stem in each.stems),
        names=frozenset(name for each in said for name in each.names),
        numbers=Counter(number for each in said for number in each.numbers),
        negations=sum(each.order.count("¬") for each in said) + sum(each.is_negated for each in said),
    )


def _pieces(procedure: str) -> Sequence[str]:
    lines = [line for line in procedure.splitlines() if line.strip()]
    return [line[at : at + _PIECE_CHARS] for line in lines for at in range(0, len(line), _PIECE_CHARS)]
