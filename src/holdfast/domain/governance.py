"""The identity, profile and capabilities of an open runtime, which decide what its operations may do."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.domain.capabilities import Catalogue
from holdfast.domain.identity import MemoryIdentity, MemoryScope, thread_of
from holdfast.domain.profiles import Budget, Profile
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import ConversationKey
from holdfast.errors import CapabilityUnavailable, InvalidInput


@dataclass(frozen=True, slots=True)
class Governance:
    identity: MemoryIdentity
    profile: Profile
    catalogue: Catalogue

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
        return ConversationKey(self.identity.space, where.channel, conversation)

    def thread(self, where: MemoryScope) -> Scope:
        return thread_of(self.identity, self.key(where))
