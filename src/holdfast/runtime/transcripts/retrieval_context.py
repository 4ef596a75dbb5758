"""Shared by recall, projection and inspection: request validation, and the filter for what a model may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.domain.access import Grant, readable_partitions
from holdfast.domain.agent_skills import NO_DIRECTORIES, AgentSkillDirectoryReport, AgentSkillHit, rank_skills
from holdfast.domain.checks import checked_instance, checked_text
from holdfast.domain.conditions import ModelContextCondition
from holdfast.domain.field_copies import copy_fields
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.domain.lifecycle import ModeInput, checked_mode
from holdfast.domain.memory import GUARDED_PLANES, OPEN_PLANES
from holdfast.domain.profiles import Pressure, pressure_of
from holdfast.domain.results import Hit
from holdfast.domain.runtime_api.retrieval import RecalledRecord
from holdfast.domain.scope import Scope
from holdfast.domain.tool_registries import MAX_REGISTRIES, ToolRegistryRef
from holdfast.errors import InvalidInput
from holdfast.loops import run_in_thread
from holdfast.ports import RankedCandidates, Reader, SearchOptions
from holdfast.runtime.gate import Core
from holdfast.runtime.recall import nothing_reason
from holdfast.runtime.search import PreparedQuery, prepare_query
from holdfast.runtime.transcripts.conversation_address import ConversationAddress

_NAME_CHARS = 256
# The end of the reason why nothing is shown.
NO_OWNER = (
    "this runtime names no subject and no agent, so it reads only what belongs to everybody: open it with subject= or"
    " agent="
)


def validate_mode(mode_input: object, pressure: object) -> tuple[ModeInput, Pressure]:
    """Validate the host's mode, and return it with the higher of its two pressures."""
    mode = checked_mode(mode_input)
    return mode, max(pressure_of(pressure), pressure_of(mode.pressure), key=list(Pressure).index)


def check_registries(refs: object) -> None:
    """Validate the registries that a host names."""
    if not isinstance(refs, tuple) or len(refs) > MAX_REGISTRIES:
        raise InvalidInput("tool_registry_refs", f"must be a tuple of at most {MAX_REGISTRIES} ToolRegistryRef")
    for ref in refs:
        checked_instance(ref, ToolRegistryRef, "tool_registry_refs")
        for name in ToolRegistryRef.__slots__:
            checked_text(getattr(ref, name), f"tool_registry_refs.{name}", max_chars=_NAME_CHARS)


@dataclass(frozen=True, slots=True)
class PreparedRetrieval(PreparedQuery):
    """A query that is ready to be ranked, and the host's skills: all of them, and those that match it."""

    skills: AgentSkillDirectoryReport = NO_DIRECTORIES
    skill_hits: tuple[AgentSkillHit, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalContext:
    """The memory to read, and the conversation it is read from, if any."""

    governance: Governance
    address: ConversationAddress | None

    @classmethod
    def of(cls, governance: Governance, given: MemoryScope | None, last: MemoryScope | None) -> RetrievalContext:
        """Use the given conversation, else the one committed last."""
        where = last if given is None else given
        return cls(governance, None if where is None else ConversationAddress.of(governance, where))

    @property
    def where(self) -> MemoryScope | None:
        return None if self.address is None else self.address.where

    @property
    def scope(self) -> Scope:
        """The whole memory: learned memories belong to no conversation."""
        return self.governance.identity.scope

    def thread(self, reader: Reader) -> Scope | None:
        return None if self.address is None else self.address.resolve(reader)

    async def prepare_query(self, core: Core, grant: Grant, query: str) -> PreparedRetrieval:
        """Prepare the query for ranking."""
        thread = None if self.address is None else self.address.stated
        if self.address is not None and self.address.where.conversation_id is None:
            # Only the store can resolve a chat id to its conversation.
            thread = await core.store.read(grant, self.address.resolve)
        prepared = await prepare_query(core, grant, query, self.search_options(thread))
        skills = await self.scan_skills()
        return copy_fields(PreparedRetrieval, prepared, skills=skills, skill_hits=rank_skills(skills.entries, query))

    async def scan_skills(self) -> AgentSkillDirectoryReport:
        """Read the folders of skills again, as far as they changed."""
        scan = self.governance.scan_skills
        return NO_DIRECTORIES if scan is None else await run_in_thread(scan)

    def explain_nothing(self, ranked: RankedCandidates, min_score: float | None) -> str:
        """Say why nothing is shown. A runtime without an owner is told that, whatever else it found."""
        reason = nothing_reason(ranked, ranked.floor if min_score is None else min_score)
        if not ranked.best:
            messages = "" if self.address is None else ", and no message of this conversation"
            reason = f"nothing was found: no memory matches{messages}"
        return reason if self.governance.identity.has_owner else f"{reason}; {NO_OWNER}"

    def search_options(
        self, thread: Scope | None, top_k: int = 1, valid_at: datetime | None = None, *, private: bool = False
    ) -> SearchOptions:
        """Search options limited to what a model in that conversation may see; guarded planes only with `private`."""
        return SearchOptions(
            top_k=top_k,
            planes=OPEN_PLANES | GUARDED_PLANES if private else None,
            valid_at=valid_at,
            condition=ModelContextCondition(tuple(sorted(readable_partitions(self.scope))), thread),
        )


def drop_broken(reader: Reader, hits: Sequence[Hit]) -> tuple[tuple[Hit, ...], int]:
    """Return the hits that rest on sound evidence, and the number of the others: nothing of those is trusted."""
    broken = reader.transcripts.resting_on_broken([hit.id for hit in hits]) if hits else frozenset()
    sound = tuple(hit for hit in hits if hit.id not in broken)
    return sound, len(hits) - len(sound)


def to_recalled_record(
    hit: Hit, text: str | None = None, *, cut: bool = False, skill_name: str | None = None
) -> RecalledRecord:
    """Convert a hit for a report. A message is not listed as its own evidence."""
    return copy_fields(
        RecalledRecord,
        hit,
        text=hit.text if text is None else text,
        evidence_ids=tuple(link.message_id for link in hit.evidence if link.message_id != hit.id),
        cut=cut,
        skill_name=skill_name,
    )
