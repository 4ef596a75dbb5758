"""The OpenAPI schemas of `/memory/*`, from the runtime's own requests and reports, and examples."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from holdfast.transports.decoder import ONE, SEVERAL, operations
from holdfast.transports.envelope import ErrorKey
from holdfast.wire import describe_codecs

_PREFIX = "runtime."
_REFERENCE = f"#/components/schemas/{_PREFIX}{{model}}"
_TEXT = {"type": "string"}
_SEVERAL, _ONE = "several procedures", "one procedure"

_PROCEDURE = {
    "title": "Deploy the site",
    "topic": "deployment",
    "content": "1. Open the deployment page.\n2. Press the button, and wait until the light is green.",
    "source_chat_id": "chat-1",
}
# A body of each operation that works as it is, after those above it.
EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "commit_transcript": {
        "turn": {
            "turn_id": "turn-1",
            "messages": [{"text": "I moved to Lisbon last week."}],
            "conversation": {"chat_id": "chat-1"},
        }
    },
    "write": _PROCEDURE,
    "recall": {"query": "Where does Ana live?", "limit": 8},
    "project": {"user_query": "Where does Ana live?", "system_max_len": 4096},
    "inspect": {"query": "Lisbon"},
    "maintain": {"scope": {"chat_id": "chat-1"}, "user_content": "I moved to Lisbon last week."},
    "recover": {"trigger": "operator_requested"},
    "replay": {"chat_id": "chat-1", "limit": 8},
    "replay_transcript": {"view": "host_ui", "scope": {"chat_id": "chat-1"}},
    "export_transcript": {"scope": {"chat_id": "chat-1"}, "limit": 16},
    "repair_transcript": {"scope": {"chat_id": "chat-1"}},
    "export": {"chat_id": "chat-1"},
    "import": {"snapshot": "<the `document` of an export>", "target_chat_id": "chat-2"},
    "request_transcript_lifecycle": {"transition": "archive", "reason": "closed", "scope": {"chat_id": "chat-1"}},
}
REJECTION: dict[str, Any] = {
    "type": "object",
    "title": "RuntimeRejection",
    "description": "Nothing was changed. `reason` says what was wrong; `audit_id` is the id of the operation row.",
    "required": ["status", "error_key", "reason", "request_id", "audit_id"],
    "properties": {
        "status": {"const": "rejected"},
        "error_key": {"type": "string", "enum": [key.value for key in ErrorKey]},
        "reason": _TEXT,
        "request_id": _TEXT,
        "audit_id": {"type": ["string", "null"]},
    },
}


@cache
def _definitions() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    named = {name: each for name, each in operations().items() if name in EXAMPLES}
    requests = {name: each.request for name, each in named.items() if each.request is not None}
    requests |= {_SEVERAL: SEVERAL, _ONE: ONE}
    return describe_codecs(requests, {name: each.report for name, each in named.items()}, _REFERENCE)


def schemas() -> dict[str, Any]:
    """The schemas that the routes refer to, for `components.schemas` of the OpenAPI document."""
    return {f"{_PREFIX}{name}": schema for name, schema in _definitions()[2].items()}


def request_body(name: str) -> dict[str, Any]:
    """The description of an operation's body. A procedure alone may have the members of several, too."""
    requests = _definitions()[0]
    schema = requests[name]
    if name == "write":
        schema = {"anyOf": [schema, requests[_SEVERAL], requests[_ONE]]}
    return {"required": True, "content": {"application/json": {"schema": schema, "example": EXAMPLES[name]}}}


def response_of(name: str, status: str = "accepted") -> dict[str, Any]:
    """The description of an operation's response of one status."""
    report = _definitions()[1].get(name, {"type": "object"})
    more: dict[str, dict[str, Any]] = {"queued": {"queue": _TEXT}, "duplicated": {"idempotency_key": _TEXT}}
    properties = {
        "status": {"const": status},
        "request_id": _TEXT,
        "audit_id": {"type": ["string", "null"]},
        **more.get(status, {}),
        "report": report,
    }
    schema = {"type": "object", "required": list(properties), "properties": properties}
    return {"description": _WORDS[status], "content": {"application/json": {"schema": schema}}}


_WORDS = {
    "accepted": "The operation was performed; its report.",
    "queued": "The operation continues in the background; its report so far.",
    "duplicated": "The key was used for this request before: the stored report of the first call.",
}
