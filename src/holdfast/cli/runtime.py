"""`runtime`: the operations of a host's runtime on its memory, as commands.

They work on the store directly, as the operator of the machine. `sdk/verbs.py` has their requests, which declare the
options. They neither write nor check the manifest of the store.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli import runtime_tools
from holdfast.cli.exits import ExitCode, UsageError, require_terminal
from holdfast.cli.formatting import format_count, format_time
from holdfast.cli.options import OnlyText, Yes, group, option
from holdfast.cli.platform import print_capabilities
from holdfast.cli.render import show_table
from holdfast.cli.runtime_calls import (
    RuntimeOptions,
    admission_code,
    build_request,
    perform_operation,
    run_operation,
)
from holdfast.cli.terminal_safety import on_one_line
from holdfast.cli.verb_commands import CliOption, OperationCall, operation_command
from holdfast.domain.capabilities import MemoryCapabilityCatalog
from holdfast.domain.runtime_api.exchange import (
    MemoryExportReport,
    MemoryImportReport,
)
from holdfast.domain.runtime_api.retrieval import (
    MemoryInspectionReport,
    MemoryProjectionReport,
    MemoryRecallReport,
)
from holdfast.domain.runtime_api.skills import (
    NO_SUCH_SKILL,
    RuntimeSkillDetailReport,
    RuntimeSkillListReport,
    RuntimeSkillMutationReport,
)
from holdfast.domain.runtime_api.transcripts import MemoryReplayReport
from holdfast.domain.runtime_api.writing import (
    MemoryCloseReport,
    MemoryWriteReport,
    MemoryWriteRequest,
)
from holdfast.errors import InvalidInput
from holdfast.inputs import moment_from
from holdfast.private_files import open_beside

app = group("Use a memory as a host's runtime does: recall, project, inspect, move, and manage skills and tools.")
skills = group("List, show, edit, enable, disable and delete runtime skills.")
app.add_typer(skills, name="skill")
app.add_typer(runtime_tools.app, name="tool-registry")


_QUERY = CliOption("QUERY", words=True)
_MAYBE_QUERY = CliOption("QUERY", words=True, optional=True)
_OUTPUT = option("--output", "FILE", "The file to write; without it, the snapshot is printed.")
_INPUT = option("--input", "FILE", "The file to read, or - for standard input.")


_command = partial(operation_command, app, whose=RuntimeOptions)
_skill_command = partial(operation_command, skills, whose=RuntimeOptions)


# --- reading ----------------------------------------------------------------------------------------------------------


@_command("capabilities", None, perform=lambda call: run_operation(call, lambda runtime: runtime.capabilities()))
def _capabilities(shown: MemoryCapabilityCatalog, call: OperationCall) -> None:
    """Show what a runtime with this profile and these settings can do, and why the rest is unavailable."""
    print_capabilities(shown)


@_command("recall", "recall", perform=perform_operation("recall"), options={"query": _QUERY})
def _recall(report: MemoryRecallReport, call: OperationCall) -> None:
    """Recall memories for QUERY, and matching messages of the conversation, best first."""
    for hit in (*report.procedural_hits, *report.working.hits):
        label = hit.skill_name or hit.kind.value
        print(f"{hit.score:.2f}  {on_one_line(label)}  {on_one_line(hit.text)}")
    for skill in report.agent_skill_hits:
        print(f"      skill of the host  {on_one_line(skill.name)}")
    for hint in report.agent_tool_hints:
        print(f"      tool of the host  {on_one_line(hint.tool_id)}  {on_one_line(hint.reason)}")
    _say_why_nothing(report.reason)


@_command("project", "project", perform=perform_operation("project"), options={"user_query": _QUERY})
def _project(report: MemoryProjectionReport, call: OperationCall) -> None:
    """Print the block of memory that a model gets for QUERY.

    If it is empty, it prints nothing, and says why on standard error. With --json it prints the audit, too.
    """
    if report.system_memory_block:
        print(report.system_memory_block)
    _say_why_nothing(report.reason)


@_command("inspect", "inspect", perform=perform_operation("inspect"), options={"query": _MAYBE_QUERY})
def _inspect(report: MemoryInspectionReport, call: OperationCall) -> None:
    """Show the state of a memory: records, pending work, deferred memories; with QUERY, what is found for it, too."""
    counts, deferred = report.hygiene, report.deferred_governance
    print(f"{format_count(counts.messages, 'message')}, {_memories(counts.memories)},", end=" ")
    print(f"{format_count(counts.conversations, 'conversation')}, {format_count(counts.turns, 'turn')} in this one")
    print(f"{format_count(counts.pending_vectors, 'record')} without vectors; jobs: {_counts(counts.jobs)}")
    print(f"{_memories(len(deferred.memories))} deferred{' and more' * deferred.more}")
    for memory in deferred.memories:
        print(f"  {on_one_line(memory.id)}  {memory.plane}  {on_one_line(memory.reason or '')}")
    for folder in report.agent_skill_directory.directories:
        print(f"{format_count(folder.skills, 'skill')} in {on_one_line(folder.directory)}")
    if report.working.recall is not None and report.working.projection is not None:
        print(f"recalled: {format_count(len(report.working.recall.hits), 'record')}", end=", ")
        print(f"projected: {report.working.projection.system_memory_chars:,} characters")
        _say_why_nothing(report.working.reason)


def _replay_ledger(call: OperationCall) -> MemoryReplayReport:
    where = call.whose.scope
    request = build_request("replay", call, chat_id=where.conversation_id or where.chat_id, channel=where.channel)
    report: MemoryReplayReport = run_operation(call, lambda runtime: runtime.replay(request))
    return report


@_command("replay", "replay", perform=_replay_ledger)
def _replay(report: MemoryReplayReport, call: OperationCall) -> None:
    """List the last turns of a conversation, oldest first, without their texts.

    `holdfast transcript replay` shows the texts, as a view allows.
    """
    print(f"{on_one_line(str(report.key))}: {len(report.entries)} of {format_count(report.total_turns, 'turn')}")
    for each in report.entries:
        print(f"{each.sequence}  {on_one_line(each.turn_id)}  {each.state}", end="  ")
        print(f"{format_count(each.messages, 'message')}  {format_time(each.committed_at)}")


def _say_why_nothing(reason: str | None) -> None:
    if reason is not None:
        print(f"Nothing to show: {on_one_line(reason)}.", file=sys.stderr)


def _memories(number: int) -> str:
    return format_count(number, "memory", "memories")


def _counts(counts: Any) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items()) or "none"


# --- moving -----------------------------------------------------------------------------------------------------------


def _export_to_file(call: OperationCall) -> MemoryExportReport:
    if call.values["output"] is not None:
        _check_replaceable(Path(call.values["output"]))
    report: MemoryExportReport = perform_operation("export")(call)
    if call.values["output"] is not None and report.document is not None:
        _write_private(Path(call.values["output"]), report.document)
    return report


@_command(
    "export",
    "export",
    perform=_export_to_file,
    extra={"output": (Annotated[OnlyText, _OUTPUT], None)},
    exit_code=admission_code,
)
def _export(report: MemoryExportReport, call: OperationCall) -> None:
    """Export a continuity snapshot: the memories of the owner, and the last turns of the conversation.

    `holdfast export` exports a whole space.
    """
    if report.snapshot is None or report.document is None:
        print(f"Not exported: {report.lifecycle_report.admission.reason}.", file=sys.stderr)
    elif call.values["output"] is None:
        print(report.document)
    else:
        counts = _counts(report.snapshot.manifest.counts)
        print(f"Exported {on_one_line(report.snapshot.chat_id)} to {on_one_line(call.values['output'])}: {counts}.")


def _check_replaceable(target: Path) -> None:
    """Refuse to replace anything but an earlier snapshot, such as a store named by mistake."""
    if target.exists() and not _begins_as_json(target):
        raise InvalidInput("output", f"{on_one_line(str(target))} exists and is no snapshot; name another file")
    if not target.absolute().parent.is_dir():
        raise InvalidInput("output", f"there is no folder for {on_one_line(str(target))}; create it first")


def _begins_as_json(target: Path) -> bool:
    if not target.is_file():
        return False
    with target.open("rb") as stream:
        return stream.read(1) == b"{"


def _write_private(target: Path, text: str) -> None:
    """Write a file that only this account can read; a file that exists is replaced when all is written."""
    target = target.resolve()
    handle, beside = open_beside(target)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _import_file(call: OperationCall) -> MemoryImportReport:
    snapshot = _read(call.values["input"])  # before a store is created
    request = build_request("import_", call, snapshot=snapshot, scope=call.whose.named_scope)
    report: MemoryImportReport = run_operation(call, lambda runtime: runtime.import_(request), create=True)
    return report


@_command(
    "import",
    "import_",
    perform=_import_file,
    extra={"input": (Annotated[str, _INPUT], Parameter.empty)},
    exit_code=admission_code,
)
def _import(report: MemoryImportReport, call: OperationCall) -> None:
    """Import a continuity snapshot that `holdfast runtime export` made, all or nothing; importing again is safe.

    It goes to the conversation that the options name, else to its own.
    """
    if not report.accepted:
        print(f"Not imported: {report.lifecycle_report.admission.reason}.", file=sys.stderr)
        return
    taken = report.taken
    print(f"Imported {format_count(taken.turns, 'turn')} and {_memories(taken.memories)}", end=" ")
    print(f"into {on_one_line(report.conversation)}. {taken.known:,} were there already.")
    if taken.withheld:
        print(f"{format_count(taken.withheld, 'private record')} withheld; --include-private imports them.")


def _read(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise InvalidInput("input", f"{on_one_line(name)} cannot be read: {error.strerror}") from None


# --- skills -----------------------------------------------------------------------------------------------------------


def _write_skill(call: OperationCall) -> MemoryWriteReport:
    request = MemoryWriteRequest.procedural(build_request("write_procedural", call))
    report: MemoryWriteReport = run_operation(call, lambda runtime: runtime.write(request), create=True)
    return report


@_command(
    "write-procedural",
    "write_procedural",
    perform=_write_skill,
    options={"content": CliOption("CONTENT", words=True), "observed_at": CliOption(parse=moment_from)},
    exit_code=admission_code,
)
def _write_procedural(report: MemoryWriteReport, call: OperationCall) -> None:
    """Write CONTENT, what to do step by step, as a runtime skill. A weak one, or a log, is rejected with the reason."""
    for each in report.procedural_evolution.reports:
        print(f"{each.action}  {on_one_line(each.detail or each.reason)}")


@_skill_command(
    "list",
    "list_runtime_skills",
    perform=perform_operation("list_runtime_skills"),
    options={"query": _MAYBE_QUERY},
)
def _list(report: RuntimeSkillListReport, call: OperationCall) -> None:
    """List runtime skills, the newest first: those with all words of QUERY, if it is given."""
    rows = [
        (each.status, _switch(each.enabled, each.needs_approval), each.quality_score, each.use_count, each.name)
        for each in report.runtime_skills
    ]
    show_table(("status", "enabled", "quality>", "uses>", "skill"), rows, "There are no such skills.")


def _switch(enabled: bool, needs_approval: bool) -> str:
    return "needs approval" if needs_approval else "yes" if enabled else "no"


@_skill_command("show", "get_runtime_skill", perform=perform_operation("get_runtime_skill"))
def _show(report: RuntimeSkillDetailReport, call: OperationCall) -> None:
    """Show the runtime skill NAME: its procedure, citations, quality and lineage. Nothing is executed."""
    one = report.summary
    enabled = _switch(one.enabled, one.needs_approval)
    print(f"{on_one_line(one.name)}  {one.status}  enabled: {enabled}  quality {one.quality_score}")
    print(f"{on_one_line(one.title)}  {on_one_line(one.topic)}".rstrip())
    print(f"used {one.use_count}, succeeded {one.validated_success_count}, mismatched {one.mismatch_count}")
    print(on_one_line(report.summary_text))
    for line in report.procedure_text.splitlines():
        print(f"  {on_one_line(line)}")
    for citation in report.citations:
        print(f"cites {on_one_line(citation)}")
    for node in report.lineage:
        print(f"{format_time(node.recorded_at)}  {node.disposition}  {on_one_line(node.summary)}")


def _mutation_code(report: RuntimeSkillMutationReport) -> ExitCode:
    return ExitCode.NOT_FOUND if report.reason == NO_SUCH_SKILL else admission_code(report)


def _present_mutation(report: RuntimeSkillMutationReport, done: str) -> None:
    if not report.accepted:
        print(f"Nothing was changed: {report.reason}.", file=sys.stderr)
    elif report.changed:
        print(f"{on_one_line(report.name)} {done}.")
    else:
        print(f"Nothing was changed: {on_one_line(report.name)} is so already.")


@_skill_command("edit", "edit_runtime_skill", perform=perform_operation("edit_runtime_skill"), exit_code=_mutation_code)
def _edit(report: RuntimeSkillMutationReport, call: OperationCall) -> None:
    """Give the runtime skill NAME a new text, as a revision. What is not given stays as it is."""
    _present_mutation(report, "edited")


_SWITCH = "set_runtime_skill_enabled"


@_skill_command("enable", _SWITCH, perform=perform_operation(_SWITCH, enabled=True), exit_code=_mutation_code)
def _enable(report: RuntimeSkillMutationReport, call: OperationCall) -> None:
    """Switch the runtime skill NAME on, also one that waits for an approval."""
    _present_mutation(report, "enabled")


@_skill_command("disable", _SWITCH, perform=perform_operation(_SWITCH, enabled=False), exit_code=_mutation_code)
def _disable(report: RuntimeSkillMutationReport, call: OperationCall) -> None:
    """Switch the runtime skill NAME off: it is neither recalled nor projected."""
    _present_mutation(report, "disabled")


def _delete_skill(call: OperationCall) -> RuntimeSkillMutationReport:
    require_terminal(call.values["yes"])
    if not call.values["yes"] and not typer.confirm("Delete the skill with all its revisions for good?", err=True):
        raise UsageError("nothing was changed")
    report: RuntimeSkillMutationReport = perform_operation("delete_runtime_skill")(call)
    return report


@_skill_command(
    "delete",
    "delete_runtime_skill",
    perform=_delete_skill,
    extra={"yes": (Yes, False)},
    exit_code=_mutation_code,
)
def _delete(report: RuntimeSkillMutationReport, call: OperationCall) -> None:
    """Delete the runtime skill NAME with all its revisions. It asks first; without a terminal, it needs --yes."""
    _present_mutation(report, "deleted")


# --- the end ----------------------------------------------------------------------------------------------------------


@_command("close", "close", perform=perform_operation("close"))
def _close(report: MemoryCloseReport, call: OperationCall) -> None:
    """Record in the event log that a runtime ended, and prune the log to the budget of the profile."""
    print(f"Closed: {on_one_line(report.reason)}.")
