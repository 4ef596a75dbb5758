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
        return MemoryScope(self.channel, self.chat, self.conversation)

    @property
    def scope(self) -> MemoryScope:
        return self.named_scope or MemoryScope(self.channel, DEFAULT_CHAT)

    @property
    def identity(self) -> MemoryIdentity:
        """The owner. Who names one of subject and agent means a memory without the other."""
        subject, agent = self.subject, self.agent
        if subject is None and agent is None:
            subject, agent = DEFAULT_SUBJECT, DEFAULT_AGENT
        return MemoryIdentity(self.space or read_settings().space, subject, agent, self.app, self.project)


def run_operation(
    call: OperationCall, operation: Callable[[AsyncMemoryRuntime], Awaitable[Any]], *, create: bool = False
) -> Any:
    """Run one operation on the store, which must exist unless the operation may `create` it."""
    path = require_local_store(call.chosen, create=create)
    plan = Plan(
        profile=call.whose.profile,
        location=path,
        identity=call.whose.identity,
        embedder=call.chosen.embedder,
        settings=read_settings(),
    )

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
