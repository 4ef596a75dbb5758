"""`runtime tool-registry`: the tools that a host has registered, and the experience with them."""

from __future__ import annotations

import sys
from functools import partial

import typer

from holdfast.cli.exits import ExitCode, UsageError, require_terminal
from holdfast.cli.formatting import format_time
from holdfast.cli.options import Yes, group
from holdfast.cli.render import show_table
from holdfast.cli.runtime_calls import RuntimeOptions, admission_code, perform_operation
from holdfast.cli.terminal_safety import on_one_line
from holdfast.cli.verb_commands import CliOption, OperationCall, operation_command
from holdfast.domain.runtime_api.tools import (
    NO_SUCH_REGISTRY,
    AgentToolRegistryListReport,
    AgentToolRegistryMutationReport,
)
from holdfast.domain.tool_registries import AgentToolRegistry

app = group("List, show and delete the tools that a host has registered.")
_command = partial(operation_command, app, whose=RuntimeOptions)
_NAMED = {"registry_id": CliOption("REGISTRY")}


@_command("list", "list_agent_tool_registries", perform=perform_operation("list_agent_tool_registries"))
def _list(report: AgentToolRegistryListReport, call: OperationCall) -> None:
    """List the registries: their tools, and the tasks that give hints, wait for repetition, or rest on other tools."""
    rows = [
        (each.registry_id, each.scope, each.tools, each.governed, each.deferred, each.drifted)
        for each in report.report.registries
    ]
    heads = ("registry", "scope", "tools>", "hints>", "waiting>", "drifted>")
    show_table(heads, rows, "No tools are registered.")
    if report.report.unregistered:
        print(f"{report.report.unregistered:,} tools and tasks are known of registries that are gone.")


@_command("show", "get_agent_tool_registry", perform=perform_operation("get_agent_tool_registry"), options=_NAMED)
def _show(registry: AgentToolRegistry, call: OperationCall) -> None:
    """Show the registry REGISTRY: its tools by name and fingerprint. It has no schemas."""
    print(f"{on_one_line(registry.registry_id)}  {registry.scope}  {registry.owner}  {registry.fingerprint}")
    if registry.registered_at is not None:
        print(f"registered {format_time(registry.registered_at)}, namespace {on_one_line(registry.namespace)}")
    rows = [
        (tool.tool_id, "no" if tool.disabled else "yes", " ".join((*tool.permission_tags, *tool.risk_tags)))
        for tool in registry.tools
    ]
    show_table(("tool", "enabled", "tags"), rows, "It has no tools.")


def _delete_registry(call: OperationCall) -> AgentToolRegistryMutationReport:
    require_terminal(call.values["yes"])
    if not call.values["yes"] and not typer.confirm("Delete the registry for good?", err=True):
        raise UsageError("nothing was changed")
    report: AgentToolRegistryMutationReport = perform_operation("delete_agent_tool_registry")(call)
    return report


def _mutation_code(report: AgentToolRegistryMutationReport) -> ExitCode:
    return ExitCode.NOT_FOUND if report.reason == NO_SUCH_REGISTRY else admission_code(report)


@_command(
    "delete",
    "delete_agent_tool_registry",
    perform=_delete_registry,
    options=_NAMED,
    extra={"yes": (Yes, False)},
    exit_code=_mutation_code,
)
def _delete(report: AgentToolRegistryMutationReport, call: OperationCall) -> None:
    """Delete the registry REGISTRY. It asks first; without a terminal, it needs --yes."""
    if report.accepted:
        print(f"{on_one_line(report.registry_id)} deleted.")
    else:
        print(f"Nothing was changed: {report.reason}.", file=sys.stderr)
