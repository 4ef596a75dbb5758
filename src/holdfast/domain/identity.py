"""Whose memory a runtime is, and which conversation a request means. What hosts give, before anything is checked."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.domain.governed import ConversationKey
from holdfast.domain.scope import DEFAULT_SPACE, Scope

# The channel that is not named: what `add` without a channel writes to.
DEFAULT_CHANNEL = "local"


@dataclass(frozen=True, slots=True)
class MemoryIdentity:
    """Whose memory it is: the space, and in it a subject, else an agent, else everybody.

    What is kept by app, project or namespace, as the gateway does, is another memory in each of them.
    """

    space: str = DEFAULT_SPACE
    subject_id: str | None = None
    agent_id: str | None = None
    app: str | None = None
    project: str | None = None
    namespace: str | None = None

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
class MemoryScope:
    """A conversation, as a host names it. Checked where it is used, so that a refusal leaves its operation row.

    `conversation_id` is its stable name. Where there is none, `chat_id` stands for it: by the alias that an earlier
    commit left, else as the name itself.
    """

    channel: str = DEFAULT_CHANNEL
    chat_id: str | None = None
    conversation_id: str | None = None

    def with_conversation_id(self, conversation_id: str) -> MemoryScope:
        return replace(self, conversation_id=conversation_id)


def thread_of(identity: MemoryIdentity, key: ConversationKey) -> Scope:
    """Where the turns of a conversation are kept."""
    channel = None if key.channel == DEFAULT_CHANNEL else key.channel
    return replace(identity.scope, channel=channel, conversation=key.conversation)


def key_of(thread: Scope) -> ConversationKey:
    """The key of the conversation that is kept there."""
    return ConversationKey(thread.space, thread.channel or DEFAULT_CHANNEL, thread.conversation or "")
