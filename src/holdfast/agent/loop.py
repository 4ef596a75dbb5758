"""The agent loop: a prompt, recalled memory, the model and its tools, an answer, and the record of it.

Every run leaves events in its session: the prompt and the answer, which later runs see, and hidden events (tools,
skills, gateway calls, failures), which no model sees. A model's error ends a run as `failed`, and nothing is stored at
the gateway; other errors are raised. A cancelled run records that in its session and closes the model's stream. The
model's reasoning is passed on and stored nowhere.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import uuid_utils

from holdfast.agent.context import ACTIVATE, ANSWERED, INSTRUCTIONS, PROMPTED, ContextBuilder, history_of
from holdfast.agent.gateway import ADD_FAILED, ADD_SUCCEEDED, AuditEvent
from holdfast.agent.loader import EngineLoadResult
from holdfast.agent.memory import Turn
from holdfast.agent.ports import (
    ModelEvent,
    ModelMessage,
    NewSessionEvent,
    Reply,
    Role,
    SessionHit,
    TokenUsage,
    ToolCall,
    ToolSpec,
)
from holdfast.agent.result import (
    AgentRunResult,
    AnswerCompleted,
    RunError,
    RunEvent,
    RunExplanation,
    RunStatus,
    ToolEnded,
    ToolStarted,
    ToolUse,
    curated_sources,
    explain,
    gateway_sources,
    session_sources,
)
from holdfast.agent.session_search import session_search_tool
from holdfast.agent.skills import activate_skill_tool
from holdfast.agent.tools import ToolOutcome, storable
from holdfast.domain.checks import checked_text
from holdfast.domain.scope import check_part
from holdfast.errors import HoldfastError, ModelError, ModelUnavailable, StoreError
from holdfast.skill_folders.document import Skill

TOOL_CALL = "tool_call"
TOOL_RESULT = "tool_result"
SKILL_ACTIVATED = "skill_activated"
RUN_COMPLETED = "run_completed"
RUN_FAILED = "run_failed"
RUN_CANCELLED = "run_cancelled"
MAX_CALLS_PER_REPLY = 16
TOOL_LIMIT_ANSWER = (
    "I have called as many tools as I may for one prompt, and have no answer yet. Ask me to go on, or for less at once."
)
_MAX_TRACED_CHARS = 16_000
_logger = logging.getLogger("holdfast.agent")

Watch = Callable[[RunEvent], Awaitable[None] | None]


class AgentLoop:
    """A loaded agent that answers prompts. Concurrent runs are independent."""

    def __init__(self, loaded: EngineLoadResult) -> None:
        self._loaded = loaded
        self._context = ContextBuilder(loaded.config.instructions or INSTRUCTIONS, loaded.skills)

    async def run(
        self, prompt: str, session_id: str | None = None, *, skills: Iterable[str] = (), watch: Watch | None = None
    ) -> AgentRunResult:
        """Answer a prompt. `watch` receives each event as it comes, and may be a coroutine function."""
        result: AgentRunResult | None = None
        async with aclosing(self.stream(prompt, session_id, skills=skills)) as events:
            async for event in events:
                if isinstance(event, AgentRunResult):
                    result = event
                elif watch is not None and inspect.isawaitable(pending := watch(event)):
                    await pending
        assert result is not None  # the last event of every stream that ends
        return result

    def stream(
        self, prompt: str, session_id: str | None = None, *, skills: Iterable[str] = ()
    ) -> AsyncGenerator[RunEvent | AgentRunResult, None]:
        """Answer a prompt, event by event; the result is the last. Closing the generator cancels the run."""
        checked_text(prompt, "prompt")
        if session_id is not None:
            check_part("session_id", session_id)
        named = [*self._loaded.config.skills, *([skills] if isinstance(skills, str) else skills)]
        activated = [self._loaded.skills.get_skill(name) for name in dict.fromkeys(named)]
        return _Run(self._loaded, self._context, prompt, session_id, activated).events()


class _Run:
    """One run: its state, and its steps."""

    def __init__(
        self,
        loaded: EngineLoadResult,
        context: ContextBuilder,
        prompt: str,
        session_id: str | None,
        activated: Sequence[Skill],
    ) -> None:
        self._loaded = loaded
        self._context = context
        self._prompt = prompt
        self._new = session_id is None
        self._session_id = session_id or str(uuid_utils.uuid7())
        self._run_id = str(uuid_utils.uuid7())
        self._activated = list(activated)
        # Events for the next commit: a commit each would cost a sync each.
        self._unwritten = [_activation(skill, "owner") for skill in activated]
        self._tools = loaded.tools.with_functions(
            {
                "session_search": session_search_tool(loaded.sessions, self._session_id, seen=self._collect_hits),
                ACTIVATE: activate_skill_tool(self._activate),
            }
        )
        self._turn: Turn | None = None
        self._history: tuple[ModelMessage, ...] = ()
        self._said: list[ModelMessage] = []
        self._hits: list[SessionHit] = []
        self._used: list[ToolUse] = []
        self._usage = TokenUsage()
        self._reply = Reply("")
        self._text = ""
        self._status = RunStatus.COMPLETED
        self._error: RunError | None = None

    async def events(self) -> AsyncGenerator[RunEvent | AgentRunResult, None]:
        try:
            await self._write(NewSessionEvent(PROMPTED, self._prompt, Role.USER, context_visible=True))
            async with self._loaded.memory.turn(self._prompt, self._session_id, record=self._record) as turn:
                self._turn = turn
                self._history = await self._load_history()
                async with aclosing(self._rounds()) as rounds:
                    async for event in rounds:
                        yield event
                await self._write(
                    self._completed_event(), NewSessionEvent(ANSWERED, self._text, Role.ASSISTANT, context_visible=True)
                )
                turn.answer(self._text)
                yield AnswerCompleted(self._text)
            await self._write()
            await self._report_tools()
        except ModelError as error:
            self._text, self._status, self._error = "", RunStatus.FAILED, RunError(error.code, str(error))
            await self._write(_failure(error))
        except (asyncio.CancelledError, GeneratorExit):
            await self._write_last(NewSessionEvent(RUN_CANCELLED, data={"answered": bool(self._text)}))
            raise
        except Exception as error:
            await self._write_last(_failure(error))
            raise
        yield self._result()

    # --- the model and its tools ------------------------------------------------------------------------------------

    async def _rounds(self) -> AsyncGenerator[RunEvent, None]:
        """Call the model, run its tool calls, and repeat; the last call has no tools, so there is always an answer."""
        limit = self._loaded.config.max_tool_rounds
        for left in range(limit, -1, -1):
            if limit and not left:
                self._status = RunStatus.TOOL_LIMIT
            async with aclosing(self._ask_model(self._tools.specs if left else ())) as pieces:
                async for piece in pieces:
                    yield piece
            if not left or not self._reply.tool_calls:
                break
            async with aclosing(self._call_tools(self._reply)) as steps:
                async for step in steps:
                    yield step
        self._text = _answer(self._reply, TOOL_LIMIT_ANSWER if self._status is RunStatus.TOOL_LIMIT else "")

    async def _ask_model(self, tools: Sequence[ToolSpec]) -> AsyncGenerator[RunEvent, None]:
        assert self._turn is not None
        messages = self._context.build_messages(
            self._prompt,
            memory=self._turn.system,
            tools=tools,
            answer_now=not tools and bool(self._said),
            activated=self._activated,
            reference=[ModelMessage(Role(each["role"]), each["content"]) for each in self._turn.messages],
            history=self._history,
        )
        reply: Reply | None = None
        async with _closing(self._loaded.model.stream((*messages, *self._said), tools)) as events:
            async for event in events:
                if isinstance(event, Reply):
                    reply = event
                else:
                    yield event
        if reply is None:
            raise ModelUnavailable(f"{self._loaded.model.name} stopped in the middle of its answer; try again")
        self._reply = reply
        self._usage += reply.usage

    async def _call_tools(self, reply: Reply) -> AsyncGenerator[RunEvent, None]:
        """Run a reply's tool calls one after another: the order may matter."""
        self._said.append(ModelMessage(Role.ASSISTANT, reply.text, tool_calls=reply.tool_calls))
        # Written before the calls: if a tool ends this process, the attempt is on record.
        await self._write(*map(_traced_call, reply.tool_calls))
        for number, call in enumerate(reply.tool_calls):
            yield ToolStarted(call)
            outcome = await self._tools.call(call) if number < MAX_CALLS_PER_REPLY else _TOO_MANY
            self._used.append(ToolUse(storable(call.name), outcome.ok))
            self._said.append(ModelMessage(Role.TOOL, outcome.content, tool_call_id=call.id))
            self._unwritten.append(_traced_result(call, outcome))
            yield ToolEnded(call, outcome.ok, outcome.content)

    async def _report_tools(self) -> None:
        reports = self._loaded.tool_reports
        if reports is not None and self._used:
            active = [skill.name for skill in self._activated]
            await reports.send(self._run_id, self._tools.specs, self._used, active)

    def _activate(self, name: str) -> str:
        """Activate a skill for the rest of the run; the next call has it before the history."""
        skill = self._loaded.skills.get_skill(name)
        if skill in self._activated:
            return f"{skill.name} is active already; its instructions are at the beginning."
        self._activated.append(skill)
        self._unwritten.append(_activation(skill, "model"))
        return f"{skill.name} is active; its instructions are now at the beginning."

    def _collect_hits(self, hits: Sequence[SessionHit]) -> None:
        self._hits += hits

    # --- the session ------------------------------------------------------------------------------------------------

    async def _load_history(self) -> tuple[ModelMessage, ...]:
        last = self._loaded.config.history_messages
        if self._new or not last:
            return ()
        # More than will be shown: prompts without an answer are left out.
        events = await self._loaded.sessions.events(self._session_id, visible=True, last=2 * last + 20)
        return history_of(events, last=last)

    async def _record(self, event: AuditEvent) -> None:
        self._unwritten.append(NewSessionEvent(event.kind, data=dict(event.data)))
        if event.kind in (ADD_SUCCEEDED, ADD_FAILED):
            # Written before `flush` is sent: if this process ends meanwhile, the add is on record.
            await self._write()

    async def _write(self, *events: NewSessionEvent) -> None:
        pending = [*self._unwritten, *events]
        if pending:
            await self._loaded.sessions.append(self._session_id, self._run_id, pending)
            # Removed only after the write: if it fails, the run's last event is written with them.
            del self._unwritten[: len(pending) - len(events)]

    async def _write_last(self, event: NewSessionEvent) -> None:
        """Record how the run ended. Neither a second cancellation nor a store error may hide the reason."""
        try:
            await asyncio.shield(self._write(event))
        except StoreError as error:
            _logger.warning("run %s ended as %s; this could not be written: %s", self._run_id, event.kind, error.code)

    # --- the result -------------------------------------------------------------------------------------------------

    def _completed_event(self) -> NewSessionEvent:
        return NewSessionEvent(
            RUN_COMPLETED,
            data={
                "status": str(self._status),
                "model": self._loaded.model.name,
                "tool_calls": len(self._used),
                "input_tokens": self._usage.input_tokens,
                "output_tokens": self._usage.output_tokens,
            },
        )

    def _result(self) -> AgentRunResult:
        return AgentRunResult(
            session_id=self._session_id,
            run_id=self._run_id,
            text=self._text,
            status=self._status,
            usage=self._usage,
            tool_calls=tuple(self._used),
            error=self._error,
            explained=self._explanation(),
        )

    def _explanation(self) -> RunExplanation:
        sources = session_sources(self._hits)
        failed = None
        if self._turn is not None:
            recall = self._turn.recall
            recalled = recall.items if recall else ()
            failed = str(recall.event.data["category"]) if recall and not recall.succeeded else None
            curated = curated_sources(self._turn.snapshot) if self._turn.snapshot else []
            sources = [*curated, *gateway_sources(recalled), *sources]
        return explain(self._prompt, self._text, sources, failed)


_TOO_MANY = ToolOutcome(f'{{"error":"more than {MAX_CALLS_PER_REPLY} calls at once; make the others again"}}', ok=False)


@asynccontextmanager
async def _closing(events: AsyncIterator[ModelEvent]) -> AsyncIterator[AsyncIterator[ModelEvent]]:
    """Always close the model's stream, and with it its connection."""
    try:
        yield events
    finally:
        close: Any = getattr(events, "aclose", None)
        if close is not None:
            await close()


def _answer(reply: Reply, otherwise: str = "") -> str:
    if text := storable(reply.text).strip():
        return text
    if otherwise:
        return otherwise
    raise ModelUnavailable("the model's answer was empty; ask again, or use another model")


def _activation(skill: Skill, by: str) -> NewSessionEvent:
    return NewSessionEvent(SKILL_ACTIVATED, data={"skill": skill.name, "by": by})


def _traced_call(call: ToolCall) -> NewSessionEvent:
    return NewSessionEvent(TOOL_CALL, _truncate_trace(call.arguments), data=_call_identity(call))


def _traced_result(call: ToolCall, outcome: ToolOutcome) -> NewSessionEvent:
    return NewSessionEvent(
        TOOL_RESULT, _truncate_trace(outcome.content), data={**_call_identity(call), "ok": outcome.ok}
    )


def _call_identity(call: ToolCall) -> dict[str, Any]:
    return {"id": storable(call.id)[:200], "name": storable(call.name)[:200]}


def _truncate_trace(text: str) -> str:
    return storable(text)[:_MAX_TRACED_CHARS]


def _failure(error: Exception) -> NewSessionEvent:
    """Record a failure. Our own errors hold no key; of others, only the type is recorded."""
    if isinstance(error, HoldfastError):
        return NewSessionEvent(RUN_FAILED, data={"code": error.code, "message": storable(str(error))[:1_000]})
    return NewSessionEvent(RUN_FAILED, data={"code": "unexpected", "kind": type(error).__name__})
