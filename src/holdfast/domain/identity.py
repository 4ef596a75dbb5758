"""The owner of a runtime's memory, and the conversation of a request, as hosts give them: not yet validated."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.domain.presentable import Presentable
from holdfast.domain.scope import DEFAULT_SPACE, Scope
from holdfast.domain.transcript_turns import ConversationKey

# The default channel, which `add` without a channel writes to.
DEFAULT_CHANNEL = "local"


@dataclass(frozen=True, slots=True)
class MemoryIdentity(Presentable):
    """The owner of a memory: a space, and in it a subject, else an agent, else everyone.

    Each app, project or namespace, as the gateway uses them, has a memory of its own.
    """

    space: str = DEFAULT_SPACE
    subject_id: str | None = None
    agent_id: str | None = None
    app: str | None = None
    project: str | None = None
    namespace: str | None = None

    @property
    def has_owner(self) -> bool:
        """True if the memory belongs to a subject or an agent, not to everyone."""
        return self.subject_id is not None or self.agent_id is not None

    @property
    def scope(self) -> Scope:
        return Scope(
            space=self.space,
            subject=self.subject_id,
            agent=self.agent_id,
            app=self.app,
            project=self.project,
            namespace=self.namespace,
        )


@dataclass(frozen=True, slots=True)
class MemoryScope(Presentable):
    """A conversation, as a host names it. Validated where it is used, so that a refusal leaves its audit row.

    `conversation_id` is its stable name. Without it, `chat_id` is used: by the alias that an earlier commit stored,
    else as the name itself.
    """

    channel: str = DEFAULT_CHANNEL
    chat_id: str | None = None
    conversation_id: str | None = None

    def with_conversation_id(self, conversation_id: str) -> MemoryScope:
        return replace(self, conversation_id=conversation_id)


def thread_of(identity: MemoryIdentity, key: ConversationKey) -> Scope:
    """Return the scope that stores the turns of a conversation."""
    channel = None if key.channel_id == DEFAULT_CHANNEL else key.channel_id
    return replace(identity.scope, channel=channel, conversation=key.conversation_id)


def key_of(thread: Scope) -> ConversationKey:
    """Return the key of the conversation in that scope."""
    return ConversationKey(thread.space, thread.channel or DEFAULT_CHANNEL, thread.conversation or "")
