"""`transcript`: shows conversations through a view, and manages the lifecycle of their turns."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, TypeVar

import typer

from holdfast.cli.exits import ExitCode, UsageError, require_terminal
from holdfast.cli.formatting import format_count, format_time
from holdfast.cli.governance import open_governed
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, LocalStoreOptions, OnlyText, Space, Yes, command, group, option
from holdfast.cli.terminal_safety import on_one_line, quote_word
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.identity import DEFAULT_CHANNEL, MemoryIdentity, MemoryScope
from holdfast.domain.profiles import DEFAULT_PROFILE
from holdfast.domain.redaction import RedactedHostRef, RedactedMessage, RedactedTurn
from holdfast.domain.runtime_api.transcripts import (
    DEFAULT_PAGE,
    MemoryTranscriptExportRequest,
    MemoryTranscriptLifecycleReport,
    MemoryTranscriptLifecycleRequest,
    MemoryTranscriptRepairRequest,
    MemoryTranscriptReplayReport,
    MemoryTranscriptReplayRequest,
)
from holdfast.domain.transcript_turns import Transition, View
from holdfast.sdk.transcripts import TranscriptOperations
from holdfast.settings import read_settings

app = group("Show and check transcripts; archive, mask or delete turns.")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ConversationOptions:
    """The conversation, its owner and the profile."""

    conversation: Annotated[OnlyText, option("--conversation", "NAME", "The conversation.")] = None
    chat: Annotated[OnlyText, option("--chat", "NAME", "A chat that is an alias of the conversation.")] = None
    channel: Annotated[
        OnlyText, option("--channel", "NAME", f"The channel it came through.  [default: {DEFAULT_CHANNEL}]")
    ] = None
    subject: Annotated[OnlyText, option("--subject", "NAME", "The subject it is about.")] = None
    agent: Annotated[OnlyText, option("--agent", "NAME", "The agent it belongs to.")] = None
    app: Annotated[OnlyText, option("--app", "NAME", "The app it belongs to; a gateway's is `default`.")] = None
    project: Annotated[
        OnlyText, option("--project", "NAME", "The project it belongs to; a gateway's is `default`.")
    ] = None
    space: Space = None
    profile: Annotated[
        str, option("--profile", "NAME", "The profile that sets the budgets; see `holdfast platform profiles`.")
    ] = DEFAULT_PROFILE

    @property
    def scope(self) -> MemoryScope:
        if self.conversation is None and self.chat is None:
            raise UsageError("give --conversation NAME or --chat NAME; messages added without either are in `default`")
        return MemoryScope(self.channel or DEFAULT_CHANNEL, self.chat, self.conversation)

    @property
    def not_found_hint(self) -> str:
        """Advice if nothing was found: each owner has a conversation of its own by the same name."""
        if self.subject is None and self.agent is None:
            return " Give --subject or --agent to name its owner; without them, it is one that belongs to nobody."
        if self.app is None and self.project is None:
            return " If it belongs to an app or a project, give --app and --project; a gateway's are `default`."
        return ""


_Limit = Annotated[int, option("--limit", "N", "At most N turns.")]
_Cursor = Annotated[OnlyText, option("--cursor", "CURSOR", "The cursor that the previous page printed.")]
_All = Annotated[bool, typer.Option("--all", help="Every following page.")]


@command(app)
def replay(
    whose: ConversationOptions,
    chosen: LocalStoreOptions,
    view: Annotated[str, option("--view", "VIEW", f"The audience: {', '.join(View)}.")] = View.HOST_UI,
    limit: _Limit = DEFAULT_PAGE,
    cursor: _Cursor = None,
    everything: _All = False,
    as_json: Json = False,
) -> None:
    """Show a conversation, oldest turn first, as a view shows it.

    Content that the view may not show is marked as withheld, with the reason.
    """

    def page(runtime: TranscriptOperations, after: str | None) -> Awaitable[MemoryTranscriptReplayReport]:
        return runtime.replay_transcript(MemoryTranscriptReplayRequest(view, whose.scope, limit, after))

    _pages(page, whose, chosen, cursor, everything=everything, as_json=as_json)


@command(app)
def export(
    whose: ConversationOptions,
    chosen: LocalStoreOptions,
    limit: _Limit = DEFAULT_PAGE,
    cursor: _Cursor = None,
    everything: _All = False,
    as_json: Json = False,
) -> None:
    """Show a conversation for export, without private, masked or deleted content.

    With --json, each turn has its citation.
    """

    def page(runtime: TranscriptOperations, after: str | None) -> Awaitable[MemoryTranscriptReplayReport]:
        return runtime.export_transcript(MemoryTranscriptExportRequest(whose.scope, limit, after))

    _pages(page, whose, chosen, cursor, everything=everything, as_json=as_json)


@command(app)
def lifecycle(
    transition: Annotated[str, typer.Argument(metavar="TRANSITION", help=f"{', '.join(Transition)}.")],
    whose: ConversationOptions,
    chosen: LocalStoreOptions,
    reason: Annotated[str, option("--reason", "TEXT", "The reason; it goes to the event log, so quote no content.")],
    turn: Annotated[OnlyText, option("--turn", "ID", "Only this turn; without it, the whole conversation.")] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Archive, restore, mask or delete the raw content of turns; or review which turns that would affect.

    Masked turns can be restored; deleted content is gone from the store, its indexes and its log. So delete_raw shows
    what it will affect and asks first; without a terminal to ask on, it needs --yes. Memories extracted from the turns
    stay, and are listed.
    """
    deletes = transition == Transition.DELETE_RAW
    if deletes:
        require_terminal(yes, "add --yes, or look first with `holdfast transcript lifecycle review`")

    def request_transition(what: str) -> MemoryTranscriptLifecycleReport:
        request = MemoryTranscriptLifecycleRequest(what, reason, whose.scope, turn)
        return _run_operation(whose, chosen, lambda runtime: runtime.request_transcript_lifecycle(request))

    if deletes and not yes:
        review = request_transition(Transition.REVIEW)
        if not review.affected_turns:
            if as_json:
                print_json(review)
            else:
                print(f"Nothing was changed: there is no such turn.{whose.not_found_hint}")
            return
        print(f"{_turns(review)} would be deleted.", file=sys.stderr)
        if not typer.confirm("Delete their content for good?", err=True):
            print("Nothing was changed.")
            raise typer.Exit(ExitCode.PROBLEM)
    report = request_transition(transition)
    if as_json:
        print_json(report)
    else:
        _print_report(report, whose)


@command(app)
def repair(whose: ConversationOptions, chosen: LocalStoreOptions, as_json: Json = False) -> None:
    """Check the consistency of a conversation and the memories extracted from it. It changes nothing.

    It exits with 1 if anything is broken; `holdfast store repair` repairs what can be repaired.
    """
    request = MemoryTranscriptRepairRequest(whose.scope)
    report = _run_operation(whose, chosen, lambda runtime: runtime.repair_transcript(request))
    if as_json:
        print_json(report)
    elif not report.checked_turns and not report.issues:
        # "No issues" would mislead if nothing was checked.
        print(f"There are no turns.{whose.not_found_hint}")
    else:
        for issue in report.issues:
            places = (issue.turn_id, issue.message_id, issue.store_key)
            named = " ".join(on_one_line(place) for place in places if place is not None)
            print(f"{issue.kind}  {named}  {on_one_line(issue.detail)}")
        print(
            f"{format_count(len(report.issues), 'issue')}{' and more' if report.profile_budget_applied else ''} in"
            f" {format_count(report.checked_turns, 'turn')}"
            f" and {format_count(report.checked_derived_refs, 'reference')}."
        )
    if report.fail_closed:
        raise typer.Exit(ExitCode.PROBLEM)


# --- calls ------------------------------------------------------------------------------------------------------------


def _run_operation(
    whose: ConversationOptions, chosen: LocalStoreOptions, call: Callable[[TranscriptOperations], Awaitable[T]]
) -> T:
    """Run one operation on the store directly, not through a server."""
    space = whose.space or read_settings().space
    identity = MemoryIdentity(space, whose.subject, whose.agent, whose.app, whose.project)

    async def run() -> T:
        async with open_governed(chosen, identity, whose.profile) as (engine, governance):
            return await call(TranscriptOperations(engine, LOCAL_OPERATOR, governance))

    return asyncio.run(run())


_Page = Callable[[TranscriptOperations, str | None], Awaitable[MemoryTranscriptReplayReport]]


def _pages(
    page: _Page,
    whose: ConversationOptions,
    chosen: LocalStoreOptions,
    cursor: str | None,
    *,
    everything: bool,
    as_json: bool,
) -> None:
    if as_json and everything:
        raise UsageError("--json prints one page; follow its next_cursor with --cursor instead of --all")

    async def go_on(runtime: TranscriptOperations) -> None:
        after = cursor
        while True:
            report = await page(runtime, after)
            _print_page(report, whose, as_json=as_json, first=after == cursor, last=not everything)
            after = report.next_cursor
            if not everything or after is None:
                return

    _run_operation(whose, chosen, go_on)


# --- output -----------------------------------------------------------------------------------------------------------


def _print_page(
    report: MemoryTranscriptReplayReport, whose: ConversationOptions, *, as_json: bool, first: bool, last: bool
) -> None:
    if as_json:
        print_json(report)
        return
    if first:
        print(f"{on_one_line(str(report.key))} as {report.view}")
    for turn in report.slice.turns:
        for line in _lines(turn):
            print(line)
    if first and not report.slice.turns:
        print(f"There are no turns.{whose.not_found_hint}")
    if last and report.next_cursor is not None:
        print(f"There is more: --cursor {quote_word(report.next_cursor)}")


def _lines(turn: RedactedTurn) -> Iterator[str]:
    yield f"\n{turn.sequence}  {on_one_line(turn.id)}  {turn.state}  {format_time(turn.committed_at)}"
    yield from map(_message_line, turn.messages)
    yield from map(_reference_line, turn.host_refs)


def _message_line(message: RedactedMessage) -> str:
    words = f"[withheld: {message.redaction}]" if message.text is None else on_one_line(message.text)
    return f"  {message.role:<10} {words}"


def _reference_line(shown_ref: RedactedHostRef) -> str:
    ref = shown_ref.ref
    label = "" if ref.label is None else f": {ref.label}"
    words = f"{ref.relation} {ref.host_kind} {ref.business_ref_type} {ref.business_ref_id}{label}"
    return f"  {'reference':<10} {on_one_line(words)}"


_DONE = {
    Transition.ARCHIVE: "archived",
    Transition.RESTORE: "restored",
    Transition.MASK: "masked",
    Transition.DELETE_RAW: "deleted",
    Transition.REVIEW: "reviewed",
}


def _turns(report: MemoryTranscriptLifecycleReport) -> str:
    return f"{format_count(report.affected_turns, 'turn')} ({format_count(report.affected_messages, 'message')})"


def _print_report(report: MemoryTranscriptLifecycleReport, whose: ConversationOptions) -> None:
    done = _DONE[report.transition]
    if report.affected_turns:
        print(f"{_turns(report)} {done}.")
    elif report.refused_turns:
        print("Nothing was changed.")
    else:
        print(f"Nothing was changed: there is no such turn, or it is {done} already.{whose.not_found_hint}")
    if report.refused_turns:
        print(f"{format_count(report.refused_turns, 'turn')} cannot be {done}: the state does not allow it.")
    if report.derived_memory_refs:
        more = " and more" if report.profile_budget_applied else ""
        named = ", ".join(ref.store_key for ref in report.derived_memory_refs)
        print(f"Memories extracted from them stay: {on_one_line(named)}{more}.")
    if report.scrubbed is False:
        print("The store is being read: the deleted bytes leave its log when no reader is left.")
