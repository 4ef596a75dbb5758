"""`jobs`: background jobs, one row per attempt."""

from __future__ import annotations

from holdfast.cli.options import group
from holdfast.cli.render import show_facts, show_table
from holdfast.cli.verb_commands import CliOption, Invocation, verb_command
from holdfast.domain.jobs import Cause, ControlJob, JobKind

app = group("Show, retry and cancel background jobs.")


@verb_command(app, "list", "jobs", options={"kinds": CliOption("--kind")})
def list_(found: list[ControlJob], call: Invocation) -> None:
    """List jobs, newest first. stuck: still running, but its worker's lease has expired."""
    show_table(
        ("queued", "kind", "state", "attempt>", "done", "caused by", "id"),
        (
            (one.created_at, one.kind, one.state, one.attempt, _format_progress(one), _format_cause(one), one.id)
            for one in found
        ),
        "There are no such jobs.",
    )


def _format_cause(one: ControlJob) -> str | None:
    if one.cause is None:
        return None
    hook = None if one.cause.hook is None else one.cause.hook.kind
    source = None if one.cause.source is None else one.cause.source.kind
    return " of ".join(part for part in (hook, source) if part) or one.cause.operation_id


def _format_progress(one: ControlJob) -> str | None:
    """Progress, if the kind of job counts it."""
    return f"{one.done:,} of {one.total:,}" if one.total else None


def _cause_ids(one: ControlJob) -> dict[str, str]:
    """The ids of what caused the job, so that each can be looked up."""
    cause = one.cause or Cause()
    of_hook = (None, None) if cause.hook is None else (cause.hook.hook_id, cause.hook.run_id)
    ids = {
        "binding": cause.binding,
        "operation": cause.operation_id,
        "hook id": of_hook[0],
        "run": one.scope.run or of_hook[1] or (None if cause.source is None else cause.source.run_id),
        "delivery": ", ".join(one.record_ids) if one.kind is JobKind.DELIVER else None,
    }
    return {name: value for name, value in ids.items() if value}


def _print_job(one: ControlJob, call: Invocation) -> None:
    facts = {
        "id": one.id,
        "kind": one.kind,
        "state": one.state,
        "attempt": f"{one.attempt}{'' if one.retry_of is None else f', after {one.retry_of}'}",
        "done": _format_progress(one),
        "queued": one.created_at,
        "started": one.started_at,
        "finished": one.finished_at,
        "caused by": _format_cause(one),
        **_cause_ids(one),
        "error": one.error or None,
    }
    show_facts(facts)
    if one.retry_available:
        print(f"`{call.suggest('jobs retry', one.id)}` retries it.")


for _name, _verb, _explained in (
    ("show", "job", "Show one attempt: its cause, progress and error."),
    ("retry", "retry_job", "Retry a failed or cancelled job: a new attempt, due at once. A worker runs it."),
    ("cancel", "cancel_job", "Cancel a job. A running worker can no longer commit it."),
):
    verb_command(app, _name, _verb, explained=_explained)(_print_job)
