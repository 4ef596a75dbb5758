"""The identity, profile and capabilities of an open runtime, which decide what its operations may do."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.domain.agent_skills import ScanSkills
from holdfast.domain.capabilities import MemoryCapabilityCatalog
from holdfast.domain.identity import MemoryIdentity, MemoryScope, thread_of
from holdfast.domain.profile_usage import HostedRecords
from holdfast.domain.profiles import Budget, Profile
from holdfast.domain.scope import Scope, check_part
from holdfast.domain.transcript_turns import ConversationKey
from holdfast.errors import CapabilityUnavailable, InvalidInput


@dataclass(slots=True)
class CountedRecords:
    """The records of a runtime's space that were counted last, so that a write need not count all."""

    found: HostedRecords = field(default_factory=HostedRecords)


@dataclass(frozen=True, slots=True)
class Governance:
    identity: MemoryIdentity
    profile: Profile
    catalogue: MemoryCapabilityCatalog
    # Capabilities that the host switched off by name: not to be confused with those that lack a model.
    switched_off: frozenset[str] = frozenset()
    # Without mounted folders of skills there is nothing to scan.
    scan_skills: ScanSkills | None = None
    counted: CountedRecords = field(default_factory=CountedRecords, compare=False, repr=False)

    @property
    def budget(self) -> Budget:
        return self.profile.budget

    def require(self, capability: str) -> None:
        """Raise `CapabilityUnavailable` unless every gate allows the capability."""
        found = self.catalogue[capability]
        if found.reason is not None:
            raise CapabilityUnavailable(
                f"{capability}: not available under {self.profile.name}, because of {found.reason};"
                f" see `holdfast platform capability-snapshot --profile {self.profile.name}`"
            )

    def key(self, where: MemoryScope) -> ConversationKey:
        """Return the key that the request names; an alias may lead to another."""
        conversation = where.conversation_id if where.conversation_id is not None else where.chat_id
        if conversation is None:
            raise InvalidInput("conversation_id", "is missing, and there is no chat_id; give one of them")
        # The errors name the parts of the request, not those of the key.
        check_part("channel", where.channel)
        check_part("conversation_id", conversation)
        return ConversationKey(self.identity.space, where.channel, conversation)

    def thread(self, where: MemoryScope) -> Scope:
        return thread_of(self.identity, self.key(where))
