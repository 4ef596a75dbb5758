"""`evolution`: review what agents propose to change in a memory, as the operator of the machine."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass
from functools import partial

import typer

from holdfast.cli.exits import ExitCode, UsageError, require_terminal
from holdfast.cli.formatting import format_count, format_time
from holdfast.cli.options import Yes, group
from holdfast.cli.render import show_table
from holdfast.cli.runtime_calls import RuntimeOptions, perform_operation, plan_of
from holdfast.cli.terminal_safety import on_one_line
from holdfast.cli.verb_commands import OperationCall, operation_command
from holdfast.domain.presentable import Presentable
from holdfast.domain.proposals import Candidate, ProceduralMemoryCandidate
from holdfast.domain.runtime_api.evolution import (
    NO_SUCH_PROPOSAL,
    NOTE_HAS_NO_OPERATION,
    ProposalCommitReport,
    ProposalDetailReport,
    ProposalDetailRequest,
    ProposalListReport,
    ProposalRejectReport,
)
from holdfast.domain.stored_proposals import ProposalStatus
from holdfast.errors import CapabilityUnavailable, Conflict, InvalidInput
from holdfast.sdk.runtime import visit_store
from holdfast.testing.replay.proposal_trial import ProposalTrial, try_proposal

app = group("Review what agents propose to change in a memory: list, show, approve or reject.")
_command = partial(operation_command, app, whose=RuntimeOptions)


# --- reading ----------------------------------------------------------------------------------------------------------


@_command("list", "list_proposals", perform=perform_operation("list_proposals"))
def _list(report: ProposalListReport, call: OperationCall) -> None:
    """List the proposals that wait for a decision, the newest first."""
    rows = [
        (each.status, format_time(each.created_at), each.procedures, each.notes, each.proposal_id, each.rationale)
        for each in report.proposals
    ]
    show_table(("status", "made", "procedures>", "notes>", "proposal", "rationale"), rows, "There are no proposals.")


@_command("show", "get_proposal", perform=perform_operation("get_proposal"))
def _show(report: ProposalDetailReport, call: OperationCall) -> None:
    """Show a proposal: what it would write, why, and on what evidence. Nothing of it is recalled before an approval."""
    _present_proposal(report)


def _present_proposal(report: ProposalDetailReport) -> None:
    one = report.summary
    print(f"{on_one_line(one.proposal_id)}  {one.status}  by {on_one_line(one.author)}, {format_time(one.created_at)}")
    print(on_one_line(report.proposal.rationale))
    for candidate, decision in zip(report.proposal.candidates, report.validation.decisions, strict=True):
        print(f"{decision.index + 1}. {candidate.kind}: {decision.reason}")
        for line in _lines_of(candidate):
            print(f"   {on_one_line(line)}")
    for each in report.evidence:
        print(f"rests on {on_one_line(each.reference)}{'' if each.known else ' (not known here)'}")
    if report.decided_by is not None:
        reason = "" if report.decision_reason is None else f": {on_one_line(report.decision_reason)}"
        print(f"{one.status} by {on_one_line(report.decided_by)}{reason}")


def _lines_of(candidate: Candidate) -> list[str]:
    if not isinstance(candidate, ProceduralMemoryCandidate):
        return [f"about {candidate.target}", candidate.summary]
    write = candidate.write
    head = f"revises {write.name}" if write.name is not None else f"writes {write.title or 'a skill'}"
    return [head, f"summary: {write.summary}", *write.content.splitlines()]


# --- deciding ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Approval(Presentable):
    """An approval, with the trial before it, or the reason why nothing was measured."""

    report: ProposalCommitReport
    trial: ProposalTrial | None
    not_measured: str | None


def _approve_proposal(call: OperationCall) -> Approval:
    require_terminal(call.values["yes"])
    shown = _load(call)
    measured = _try(call, shown)
    trial, why_not = (measured, None) if isinstance(measured, ProposalTrial) else (None, measured)
    if not call.values["yes"]:
        # Standard output is for the report.
        with contextlib.redirect_stdout(sys.stderr):
            _present_proposal(shown)
            _present_trial(trial, why_not)
        if not typer.confirm("Write it?", err=True):
            raise UsageError("nothing was changed")
    return Approval(perform_operation("approve_proposal")(call), trial, why_not)


def _load(call: OperationCall) -> ProposalDetailReport:
    request = ProposalDetailRequest(call.arguments["proposal_id"])

    async def load() -> ProposalDetailReport:
        async with visit_store(plan_of(call)) as runtime:
            return await runtime.get_proposal(request)

    return asyncio.run(load())


def _try(call: OperationCall, shown: ProposalDetailReport) -> ProposalTrial | str:
    """Measure on a copy in memory, or say why nothing is measured."""
    if not shown.proposal.writes or shown.summary.status is not ProposalStatus.PENDING:
        return "there is nothing to write"
    try:
        return asyncio.run(try_proposal(plan_of(call), shown.proposal))
    except (CapabilityUnavailable, Conflict, InvalidInput) as error:
        return str(error)


def _present_trial(trial: ProposalTrial | None, why_not: str | None) -> None:
    if trial is None:
        print(f"Not measured: {on_one_line(why_not or '')}.")
        return
    print(trial.measured)
    before, after = trial.before, trial.after
    print(f"{format_count(trial.cases, 'known skill')}: {'passed' if trial.passed else 'FAILED'}")
    for name in ("recall", "precision", "mrr", "ndcg"):
        print(f"  {name:<9}  before {getattr(before, name):.3f}  after {getattr(after, name):.3f}")
    for result in (each for each in trial.results if not each.passed):
        for problem in result.problems:
            print(f"  {on_one_line(result.measurement.name)}: {on_one_line(problem)}")
    print(f"  {format_count(len(trial.changed), 'case')} with another ranking")
    for reason in trial.rejected:
        print(f"  a procedure would be rejected: {reason}")


def _decision_code(report: ProposalCommitReport | ProposalRejectReport) -> ExitCode:
    if report.accepted:
        return ExitCode.OK
    return ExitCode.NOT_FOUND if report.reason == NO_SUCH_PROPOSAL else ExitCode.PROBLEM


@_command(
    "approve",
    "approve_proposal",
    perform=_approve_proposal,
    extra={"yes": (Yes, False)},
    exit_code=lambda approval: _decision_code(approval.report),
)
def _approve(approval: Approval, call: OperationCall) -> None:
    """Write the procedures of a proposal as runtime skills: all of them, or nothing.

    It first measures, on a copy in memory, how well skills are recalled before and after, and asks. Without a terminal,
    it needs --yes. A proposal with a governance note is not approved: act on the note, then reject the proposal.
    """
    if call.values["yes"]:
        _present_trial(approval.trial, approval.not_measured)
    report = approval.report
    for name in report.committed_writes:
        print(f"{on_one_line(name)} written.")
    if report.reason == NOTE_HAS_NO_OPERATION:
        print("Nothing was written: act on the governance note, then reject the proposal.", file=sys.stderr)
    elif not report.accepted:
        print(f"Nothing was written: {report.reason}.", file=sys.stderr)


@_command("reject", "reject_proposal", perform=perform_operation("reject_proposal"), exit_code=_decision_code)
def _reject(report: ProposalRejectReport, call: OperationCall) -> None:
    """Close a proposal without writing anything."""
    if report.accepted:
        print(f"{on_one_line(report.proposal_id)} rejected.")
    else:
        print(f"Nothing was changed: {report.reason}.", file=sys.stderr)
