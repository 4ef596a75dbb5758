"""Every argument of every verb is an option of each surface that has the verb, or is declared missing with a reason."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from holdfast import AsyncMemory
from holdfast.cli.program import app
from holdfast.control.tools import COMPANY_TOOLS
from holdfast.control.verbs import VERBS as CONTROL_VERBS
from holdfast.control_api import AsyncControlPlane
from holdfast.domain.scope import SCOPE_PARTS
from holdfast.gateway.control.routes import ROUTES as CONTROL_ROUTES
from holdfast.gateway.control.verb_routes import VerbRoute
from holdfast.runtime.verb_entry import VerbEntry
from holdfast.runtime.verbs import VERBS as LIBRARY_VERBS
from holdfast.sdk.verbs import VERBS as RUNTIME_VERBS
from holdfast.wire import all_verbs, openapi_definitions

PLAIN_ROUTES = [each for group in CONTROL_ROUTES.values() for each in group]
TOOLS = COMPANY_TOOLS.definitions
HEADERS = {"idempotency_key": "idempotency-key", "expected_revision": "if-match"}
OPENAPI = json.loads((Path(__file__).parent / "gateway" / "golden" / "openapi.json").read_text("utf-8"))

# Commands and routes by verb.
COMMANDS = {
    "add": "add", "flush": "flush", "search": "search", "recall": "recall", "explain": "explain",
    "get": "get", "list": "list", "browse": "browse", "remember": "remember", "correct": "correct",
    "forget": "forget", "add_resource": "resource add", "resources": "resource list",
    "delete_resource": "resource delete",
    "history": "history", "revert": "revert",
    "create_user": "credential create", "rotate_user": "credential rotate", "revoke_user": "credential revoke",
    "users": "credential list", "jobs": "store jobs", "stats": "store stats", "verify": "store verify",
    "events": "store events", "rebuild": "store rebuild",
}  # fmt: skip
CONTROL_COMMANDS = {
    "operations": "operations list", "operation": "operations show", "metrics": "operations metrics",
    "jobs": "jobs list", "job": "jobs show", "retry_job": "jobs retry", "cancel_job": "jobs cancel",
    "deliveries": "deliveries list", "delivery": "deliveries show", "retry_delivery": "deliveries retry",
    "drop_delivery": "deliveries drop", "cost_summary": "costs summary", "cost_events": "costs events",
    "add_fee": "costs fee", "finance_events": "costs fees", "prices": "costs prices list",
    "set_price": "costs prices set", "remove_price": "costs prices remove", "activity": "binding activity",
    "binding": "binding show", "update_binding": "binding update", "create_binding": "binding create",
    "delete_binding": "binding delete", "resolve": "binding resolve",
}  # fmt: skip
RUNTIME_COMMANDS = {
    "write_procedural": "runtime write-procedural", "recall": "runtime recall", "project": "runtime project",
    "inspect": "runtime inspect", "replay": "runtime replay", "export": "runtime export", "import_": "runtime import",
    "list_runtime_skills": "runtime skill list", "get_runtime_skill": "runtime skill show",
    "edit_runtime_skill": "runtime skill edit", "set_runtime_skill_enabled": "runtime skill enable",
    "delete_runtime_skill": "runtime skill delete", "list_proposals": "evolution list",
    "get_proposal": "evolution show", "approve_proposal": "evolution approve", "reject_proposal": "evolution reject",
    "list_agent_tool_registries": "runtime tool-registry list", "get_agent_tool_registry": "runtime tool-registry show",
    "delete_agent_tool_registry": "runtime tool-registry delete", "close": "runtime close",
}  # fmt: skip
ROUTES = {
    "search": "post /memories/search", "recall": "post /memories/recall", "list": "get /memories",
    "get": "get /memories/{record_id}",
    "history": "get /memories/{record_id}/history", "correct": "patch /memories/{record_id}",
    "revert": "post /memories/{record_id}/revert", "forget": "post /memories/forget",
    "resources": "get /resources", "resource": "get /resources/{resource_id}",
    "delete_resource": "delete /resources/{resource_id}", "users": "get /users",
    "revoke_user": "delete /users/{user_id}",
}  # fmt: skip


# The names of arguments on a surface, where they differ.
NAMES = {
    "command": {
        "content": "files", "external_uri": "uri", "resource_id": "ids",
        "user_id": "name", "subjects": "subject",
    },
    "route": {
        **HEADERS, "memory_id": "record_id", "source": "session_id", "condition": "filters", "kind": "scope",
    },
    "tool": {},
}  # fmt: skip
OF_VERBS = "the route's fields are those that its first clients know; POST /verbs has it"
FROM_SCREEN = "the command shows the preview and forgets exactly that"
ONE_BINDING = "an agent uses the binding that its company chose"
# Arguments that no verb has on a surface.
NEVER = {
    "command": {
        "idempotency_key": "whoever runs a command sees whether it succeeded, and can look before repeating it",
        "cursor": "--limit reads as many pages as it needs",
    },
    "tool": {"idempotency_key": "a model cannot keep a key", "binding_key": ONE_BINDING},
    "route": {},
}
MISSING: dict[tuple[str, str], dict[str, str]] = {
    ("command", "search"): {"condition": "it is a tree"},
    ("command", "explain"): {"condition": "it is a tree"},
    ("command", "browse"): {"condition": "it is a tree"},
    ("command", "recall"): {"condition": "it is a tree"},
    ("command", "forget"): {"token": FROM_SCREEN, "expected_revision": FROM_SCREEN},
    ("command", "add_resource"): {"media_type": "the name of the file says the format"},
    ("command", "create_user"): {"presented_key": "a key must not appear in the list of processes"},
    ("command", "operations"): {"of_memory": "it is `--all`, reversed"},
    ("command", "create_binding"): {"enabled": "it is `--disabled`, reversed"},
    ("command", "update_binding"): {"enabled": "`holdfast binding enable` and `disable` do it"},
    ("route", "search"): {"source": "`filters` on session_id has it"},
    ("route", "recall"): {"source": "`filters` on session_id has it"},
    ("route", "correct"): dict.fromkeys(("since", "until", "evidence"), OF_VERBS),
    ("route", "forget"): {"expected_revision": "its token fails if the record changed"},
    ("route", "users"): {"kind": "/companies/{company_id}/memory/credentials has the other kinds"},
    ("route", "revoke_user"): {"kind": "/companies/{company_id}/memory/credentials has the other kinds"},
    ("tool", "memory.search"): {
        "intent": "a tool's search answers a question", "min_score": "a model sees the scores of all results",
    },
    ("tool", "memory.note"): {
        "records": "its fields are inputs of their own", "source": "it is a manual note of the agent's run",
    },
    ("tool", "memory.jobs"): dict.fromkeys(
        ("kinds", "binding", "agent", "project", "issue", "run", "hook", "since", "until"),
        "an agent sees its own few jobs",
    ),
}  # fmt: skip


def command_options(path: str) -> set[str]:
    found: Any = get_command(app)
    for name in path.split():
        found = found.commands[name]
    return {each.name for each in found.params}


def schema_names(schema: Any, definitions: dict[str, Any], seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """Return the names of all properties in a JSON schema, at any depth."""
    if isinstance(schema, list):
        for part in schema:
            yield from schema_names(part, definitions, seen)
    elif isinstance(schema, dict):
        name = schema.get("$ref", "").rpartition("/")[2]
        if name and name not in seen:
            yield from schema_names(definitions[name], definitions, seen | {name})
        yield from schema.get("properties", {})
        for part in (part for keyword, part in schema.items() if keyword not in ("discriminator", "default")):
            yield from schema_names(part, definitions, seen)


def route_options(route: str) -> set[str]:
    method, path = route.split()
    about = OPENAPI["paths"][path][method]
    names = {each["name"] for each in about.get("parameters", ())}
    return names | set(schema_names(about.get("requestBody", {}), OPENAPI["components"]["schemas"]))


def missing(surface: str, entry: VerbEntry, options: set[str]) -> set[str]:
    """Return the arguments that are no options, by the surface's name, their public name or their own."""
    names = NAMES[surface]
    return {
        each.name
        for each in entry.arguments
        if not options & {names.get(each.name, each.name), each.name, entry.public_name(each)}
    }


def declared(surface: str, name: str, entry: VerbEntry) -> set[str]:
    never = {each.name for each in entry.arguments if each.name in NEVER[surface]}
    return never | set(MISSING.get((surface, name), {}))


@pytest.mark.parametrize(("face", "table"), [(AsyncMemory, LIBRARY_VERBS), (AsyncControlPlane, CONTROL_VERBS)])
def test_methods_have_every_argument_and_no_other(face: type, table: dict[str, VerbEntry]) -> None:
    for name, entry in table.items():
        parameters = set(inspect.signature(getattr(face, name)).parameters) - {"self"}
        public = {entry.public_name(each) for each in entry.arguments}
        assert public <= parameters <= public | set(SCOPE_PARTS), name


@pytest.mark.parametrize("entry", [*LIBRARY_VERBS.values(), *CONTROL_VERBS.values()], ids=lambda entry: entry.name)
def test_the_wire_has_every_argument(entry: VerbEntry) -> None:
    requests, _, definitions = openapi_definitions("#/{model}")
    spoken = next(each for each in all_verbs().values() if each.request_type is entry.request)
    assert {each.name for each in entry.arguments} <= set(schema_names(requests[spoken.name], definitions))


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_of_the_library_have_every_argument(name: str) -> None:
    entry = LIBRARY_VERBS[name]
    assert missing("command", entry, command_options(COMMANDS[name])) == declared("command", name, entry)


@pytest.mark.parametrize("name", CONTROL_COMMANDS)
def test_commands_of_the_control_plane_have_every_argument(name: str) -> None:
    entry = CONTROL_VERBS[name]
    found = declared("command", name, entry) & {each.name for each in entry.arguments}
    assert missing("command", entry, command_options(CONTROL_COMMANDS[name])) == found


@pytest.mark.parametrize("name", RUNTIME_VERBS)
def test_commands_of_the_runtime_have_every_argument_with_its_help(name: str) -> None:
    entry = RUNTIME_VERBS[name]
    assert missing("command", entry, command_options(RUNTIME_COMMANDS[name])) == set()
    assert all(each.help for each in entry.arguments if not entry.is_positional(each))


@pytest.mark.parametrize("name", ROUTES)
def test_routes_of_the_library_have_every_argument(name: str) -> None:
    entry = LIBRARY_VERBS[name]
    assert missing("route", entry, route_options(ROUTES[name])) == declared("route", name, entry)


@pytest.mark.parametrize("route", PLAIN_ROUTES, ids=lambda each: each.verb)
def test_routes_of_the_control_plane_have_every_argument(route: VerbRoute) -> None:
    path = "/companies/{company_id}/memory" + route.path.replace(":path", "")
    named = {HEADERS.get(each.name, route.public_name(each)) for each in route.entry.arguments}
    assert named - route_options(f"{route.method.lower()} {path}") == set()


@pytest.mark.parametrize("name", TOOLS)
def test_tools_have_every_argument(name: str) -> None:
    tool = TOOLS[name]
    assert missing("tool", tool.entry, {*tool.arguments, *tool.inputs}) == declared("tool", name, tool.entry)


def test_every_declaration_has_a_verb() -> None:
    known = {"command": {*COMMANDS, *CONTROL_COMMANDS}, "route": set(ROUTES), "tool": set(TOOLS)}
    assert all(name in known[surface] for surface, name in MISSING)
