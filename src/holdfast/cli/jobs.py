"""`jobs`: background jobs, one row per attempt."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from holdfast.cli.control_plane import (
    MAX_PAGE,
    Company,
    Few,
    Since,
    Until,
    open_control_plane,
    show_table,
    without_none,
)
from holdfast.cli.formatting import format_time
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, LocalStoreOptions, OnlyText, StoreOptions, expand_options
from holdfast.cli.paging import iterate_pages
from holdfast.cli.render import console, show_facts
from holdfast.cli.suggestions import suggest_command
from holdfast.control.schemas import JobTold
from holdfast.domain.jobs import Cause, ControlJob, JobKind

app = typer.Typer(help="Show, retry and cancel background jobs.", rich_markup_mode=None)

JobId = Annotated[str, typer.Argument(metavar="ID", hidden=True)]


@app.callback(invoke_without_command=True)
def jobs(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(name="list")
@expand_options
def list_(
    chosen: LocalStoreOptions,
    company: Company = None,
    state: Annotated[
        OnlyText,
        typer.Option("--state", metavar="STATE", help="queued, running, succeeded, failed, cancelled or stuck."),
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="Such as extract or deliver; repeatable.")
    ] = None,
    binding: Annotated[OnlyText, typer.Option("--binding", metavar="KEY", help="Through this binding.")] = None,
    hook: Annotated[OnlyText, typer.Option("--hook", metavar="KIND", help="Triggered by this hook.")] = None,
    agent: Annotated[OnlyText, typer.Option("--agent", metavar="NAME", help="Of this agent.")] = None,
    project: Annotated[OnlyText, typer.Option("--project", metavar="NAME", help="In this project.")] = None,
    issue: Annotated[OnlyText, typer.Option("--issue", metavar="NAME", help="In this issue.")] = None,
    run: Annotated[OnlyText, typer.Option("--run", metavar="NAME", help="In this run.")] = None,
    since: Since = None,
    until: Until = None,
    limit: Few = 50,
    as_json: Json = False,
) -> None:
    """List jobs, newest first. stuck: still running, but its worker's lease has expired."""
    filters = without_none(
        state=state,
        kinds=kind or None,
        binding_key=binding,
        hook=hook,
        agent=agent,
        project=project,
        issue=issue,
        run=run,
        since=since,
        until=until,
    )
    with open_control_plane(chosen, company) as plane:
        found = list(
            iterate_pages(lambda most, cursor: plane.jobs(limit=most, cursor=cursor, **filters), limit, MAX_PAGE)
        )
    if as_json:
        print_json({"jobs": [_to_json(one) for one in found]})
        return
    show_table(
        ("queued", "kind", "state", "attempt>", "done", "caused by", "id"),
        (
            (
                format_time(one.created_at),
                one.kind,
                one.state,
                one.attempt,
                _format_progress(one),
                _format_cause(one),
                one.id,
            )
            for one in found
        ),
        "There are no such jobs.",
    )


@app.command()
@expand_options
def show(job_id: JobId, chosen: LocalStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Show one attempt: its cause, progress and error."""
    with open_control_plane(chosen, company) as plane:
        _print_job(chosen, company, plane.job(job_id), as_json)


@app.command()
@expand_options
def retry(job_id: JobId, chosen: LocalStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Retry a failed or cancelled job: a new attempt, due at once. A worker runs it."""
    with open_control_plane(chosen, company) as plane:
        _print_job(chosen, company, plane.retry_job(job_id), as_json)


@app.command()
@expand_options
def cancel(job_id: JobId, chosen: LocalStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Cancel a job. A running worker can no longer commit it."""
    with open_control_plane(chosen, company) as plane:
        _print_job(chosen, company, plane.cancel_job(job_id), as_json)


def _to_json(one: ControlJob) -> dict[str, Any]:
    """The JSON form, as in HTTP and tools."""
    return JobTold.of(one).model_dump(mode="json")


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


def _print_job(chosen: StoreOptions, company: str | None, one: ControlJob, as_json: bool) -> None:
    if as_json:
        print_json(_to_json(one))
        return
    facts = {
        "id": one.id,
        "kind": one.kind,
        "state": one.state,
        "attempt": f"{one.attempt}{'' if one.retry_of is None else f', after {one.retry_of}'}",
        "done": _format_progress(one) or "-",
        "queued": format_time(one.created_at),
        "started": "-" if one.started_at is None else format_time(one.started_at),
        "finished": "-" if one.finished_at is None else format_time(one.finished_at),
        "caused by": _format_cause(one) or "-",
        **_cause_ids(one),
        "error": one.error or "-",
    }
    show_facts(console(), facts)
    if one.retry_available:
        print(f"`{suggest_command(chosen, 'jobs retry', one.id, company=company)}` retries it.")
