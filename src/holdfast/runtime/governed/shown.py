"""What recall, projection and inspection share: how requests are checked, and what a model may be shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.domain.access import Grant, readable
from holdfast.domain.conditions import ForModel
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.domain.kinds import checked_kind
from holdfast.domain.lifecycle import ModeInput, checked_mode
from holdfast.domain.memory import GUARDED_PLANES, OPEN_PLANES
from holdfast.domain.profiles import Pressure, pressure_of
from holdfast.domain.results import Hit
from holdfast.domain.scope import Scope
from holdfast.domain.surface.retrieval import RecalledRecord, ToolRegistryRef
from holdfast.domain.text import checked_text
from holdfast.errors import InvalidInput
from holdfast.ports import Reader, Wanted
from holdfast.runtime.governed.threads import Address
from holdfast.runtime.perform import Core
from holdfast.runtime.search import Asked, asked

MAX_REGISTRIES = 64
_NAME_CHARS = 256


def checked_circumstances(given: object, pressure: object) -> tuple[ModeInput, Pressure]:
    """What the host says of itself, and the worse of the two pressures it names."""
    mode = checked_mode(given)
    return mode, max(pressure_of(pressure), pressure_of(mode.pressure), key=list(Pressure).index)


def check_registries(given: object) -> None:
    """Nothing is asked of registries yet; what is none is refused all the same."""
    if not isinstance(given, tuple) or len(given) > MAX_REGISTRIES:
        raise InvalidInput("tool_registry_refs", f"must be a tuple of at most {MAX_REGISTRIES} ToolRegistryRef")
    for ref in given:
        checked_kind(ref, ToolRegistryRef, "tool_registry_refs")
        for name in ToolRegistryRef.__slots__:
            checked_text(getattr(ref, name), f"tool_registry_refs.{name}", max_chars=_NAME_CHARS)


@dataclass(frozen=True, slots=True)
class Sight:
    """Whose memory is looked at, and from within which conversation, if any."""

    governance: Governance
    address: Address | None

    @classmethod
    def of(cls, governance: Governance, given: MemoryScope | None, last: MemoryScope | None) -> Sight:
        """From the conversation that was given, else the one committed last."""
        where = last if given is None else given
        return cls(governance, None if where is None else Address.of(governance, where))

    @property
    def where(self) -> MemoryScope | None:
        return None if self.address is None else self.address.where

    @property
    def scope(self) -> Scope:
        """All of this memory: what is learned belongs to no conversation."""
        return self.governance.identity.scope

    def thread(self, reader: Reader) -> Scope | None:
        return None if self.address is None else self.address.find(reader)

    async def asked(self, core: Core, grant: Grant, query: str) -> Asked:
        """The query, ready to be ranked."""
        thread = None if self.address is None else self.address.stated
        if self.address is not None and self.address.where.conversation_id is None:
            # Only the store knows which conversation a chat id stands for.
            thread = await core.store.read(grant, self.address.find)
        return await asked(core, grant, query, self.wanted(thread))

    def wanted(
        self, thread: Scope | None, top_k: int = 1, valid_at: datetime | None = None, *, private: bool = False
    ) -> Wanted:
        """Only what a model in that conversation may be shown; guarded planes only if their gate is open."""
        return Wanted(
            top_k=top_k,
            planes=OPEN_PLANES | GUARDED_PLANES if private else None,
            valid_at=valid_at,
            condition=ForModel(tuple(sorted(readable(self.scope))), thread),
        )


def recalled(hit: Hit, text: str | None = None, *, cut: bool = False) -> RecalledRecord:
    """A hit as a report shows it. A message is its own evidence, which need not be said."""
    return RecalledRecord(
        id=hit.id,
        kind=hit.kind,
        plane=hit.plane,
        text=hit.text if text is None else text,
        score=hit.score,
        trust=hit.trust,
        recorded_at=hit.recorded_at,
        said_at=hit.said_at,
        sender=hit.sender,
        role=hit.role,
        source=hit.source,
        evidence_ids=tuple(link.message_id for link in hit.evidence if link.message_id != hit.id),
        cut=cut,
    )
