"""The options of the commands of `runtime`, and the calls of its operations on a store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from holdfast.cli.exits import ExitCode
from holdfast.cli.options import OnlyText, option
from holdfast.cli.store_access import require_local_store
from holdfast.cli.transcript import ConversationOptions
from holdfast.cli.verb_commands import OperationCall
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.sdk.builder import Plan
from holdfast.sdk.runtime import AsyncMemoryRuntime, visit_store
from holdfast.sdk.verbs import VERBS
from holdfast.settings import read_settings

DEFAULT_SUBJECT, DEFAULT_AGENT, DEFAULT_CHAT = "owner-default", "agent-main", "chat-1"


@dataclass(frozen=True, slots=True)
class RuntimeOptions(ConversationOptions):
    """The owner of the memory, the conversation and the profile, with the defaults of a runtime."""

    chat: Annotated[
        OnlyText, option("--chat", "NAME", f"A chat that is an alias of the conversation.  [default: {DEFAULT_CHAT}]")
    ] = None
    subject: Annotated[
        OnlyText,
        option("--subject", "NAME", f"The subject it is about.  [default: {DEFAULT_SUBJECT} without --agent]"),
    ] = None
    agent: Annotated[
        OnlyText, option("--agent", "NAME", f"The agent it belongs to.  [default: {DEFAULT_AGENT} without --subject]")
    ] = None

    @property
    def named_scope(self) -> MemoryScope | None:
        """The conversation, if one was named."""
        if self.conversation is None and self.chat is None:
            return None
        return MemoryScope(self._channel, self.chat, self.conversation)

    @property
    def scope(self) -> MemoryScope:
        return self.named_scope or MemoryScope(self._channel, read_settings().runtime_chat)

    @property
    def _channel(self) -> str:
        return self.channel or read_settings().runtime_channel

    @property
    def identity(self) -> MemoryIdentity:
        """The owner that the options name, else that of the settings. A subject alone has no agent, and vice versa."""
        settings = read_settings()
        named = ((self.subject, self.agent), (settings.runtime_subject, settings.runtime_agent))
        subject, agent = next((each for each in named if any(each)), (DEFAULT_SUBJECT, DEFAULT_AGENT))
        return MemoryIdentity(self.space or settings.space, subject, agent, self.app, self.project)


def plan_of(call: OperationCall, *, create: bool = False) -> Plan:
    """Return the options of the runtime that a command uses. Its store must exist unless it may `create` it."""
    return Plan(
        profile=call.whose.profile,
        location=require_local_store(call.chosen, create=create),
        identity=call.whose.identity,
        embedder=call.chosen.embedder,
        settings=read_settings(),
    )


def run_operation(
    call: OperationCall, operation: Callable[[AsyncMemoryRuntime], Awaitable[Any]], *, create: bool = False
) -> Any:
    """Run one operation on the store."""
    plan = plan_of(call, create=create)

    async def run() -> Any:
        async with visit_store(plan) as runtime:
            return await operation(runtime)

    return asyncio.run(run())


def build_request(verb: str, call: OperationCall, **more: Any) -> Any:
    """Build the request of an operation from the arguments of the call; most name a conversation."""
    request = VERBS[verb].request
    if "scope" in request.__slots__:
        more.setdefault("scope", call.whose.scope)
    return request(**call.arguments, **more)


def perform_operation(verb: str, **more: Any) -> Callable[[OperationCall], Any]:
    """Return what performs an operation of the table."""
    return lambda call: run_operation(call, lambda runtime: getattr(runtime, verb)(build_request(verb, call, **more)))


def admission_code(report: Any) -> ExitCode:
    return ExitCode.OK if report.accepted else ExitCode.PROBLEM
