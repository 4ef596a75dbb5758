"""Writes an example request of an operation, as a command for curl, from the schema of its body."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from holdfast.gateway.authentication import RULE, AccessRule
from holdfast.runtime.verb_entry import Reach
from holdfast.runtime.verbs import VERBS

Schema = Mapping[str, Any]
_DEPTH = 6
# Who sends the request, as a variable of the shell.
_KEYS = {
    AccessRule.PUBLIC: None,
    AccessRule.USER: "$KEY",
    AccessRule.KNOWN: "$TOKEN",
    AccessRule.COMPANY: "$TOKEN",
    AccessRule.OPERATOR: "$TOKEN",
    AccessRule.SIGN_UP: "$TOKEN",
    AccessRule.METRICS: "$TOKEN",
}
# Values by the name of their field.
_VALUES: dict[str, Any] = {
    "target": {"conversation": "default"},
    "payload": {"text": "I moved to Lisbon last week."},
    "key": "default",
    "binding_key": "default",
    "target_id": "default",
    "name": "memory.list",
    "space": "default",
    "text": "I moved to Lisbon last week.",
    "content": "I moved to Lisbon last week.",
    "query": "Where does Ana live?",
    "user_id": "ana",
    "subject": "ana",
    "agent_id": "helper",
    "company_id": "default",
    "provider": "local",
    "uri": "https://example.org/notes",
    "session_id": "chat:default",
    "sender_id": "ana",
    "since": "2026-01-01T00:00:00Z",
    "until": "2026-12-31T00:00:00Z",
}
_FORMATS = {"date-time": "2026-11-15T09:30:00Z", "binary": "SSBtb3ZlZCB0byBMaXNib24u"}  # in base64


_IDEMPOTENCY = "x-idempotency-key"  # which the operations of a runtime need that change memory
_CAPTURED = "post_run_capture"  # a kind of hook that carries a payload
# Verbs in a scope, by the last part of their path. The others take an empty one.
_SCOPED = frozenset(str(entry.request.action) for entry in VERBS.values() if entry.reach is Reach.SCOPE)
# Bodies that need one of their optional fields, by path.
_CHANGES = {path: {"enabled": True} for path in ("/companies/default/memory/bindings/default", "/verbs/update_binding")}


class ExampleWriter:
    """Writes requests with the required fields only. `base` is the service's URL."""

    def __init__(self, schemas: Schema, base: str) -> None:
        self._schemas = schemas
        self._base = base

    def command(self, method: str, path: str, operation: Schema) -> str:
        query = []
        for each in operation.get("parameters", ()):
            if each["in"] == "path":
                path = path.replace(f"{{{each['name']}}}", str(self.value(each["schema"], each["name"])))
            elif each["in"] == "query" and each.get("required"):
                query.append(f"{each['name']}={self.value(each['schema'], each['name'])}")
        url = f"{self._base}{path}" + (f"?{'&'.join(query)}" if query else "")
        parts = [f"curl -s{'' if method in ('GET', 'POST') else f'X {method}'} {shlex.quote(url)}"]
        if (key := _KEYS[AccessRule(operation[RULE])]) is not None:
            parts.append(f'-H "Authorization: Bearer {key}"')
        if any(each["name"] == _IDEMPOTENCY for each in operation.get("parameters", ())):
            parts.append(f"-H '{_IDEMPOTENCY}: {operation['operationId']}-1'")
        parts += self._body(method, path, operation.get("requestBody", {}).get("content", {}))
        return " \\\n  ".join(parts)

    def _body(self, method: str, path: str, content: Schema) -> list[str]:
        if "multipart/form-data" in content:
            return ["-F file=@notes.md"]
        if "application/json" in content:
            found = content["application/json"]
            whole = found["example"] if "example" in found else self._whole(path, found["schema"])
            body = json.dumps(whole, ensure_ascii=False)
            return ["-H 'Content-Type: application/json'", f"-d {shlex.quote(body)}"]
        return ["-d ''", "-H 'Content-Type: application/json'"] if method == "POST" else []

    def _whole(self, path: str, schema: Schema) -> Any:
        body = self.value(schema)
        if path.removeprefix("/verbs/") in _SCOPED:
            body["scope"] = {"subject": "ana", "conversation": "default"}
        return body | _CHANGES.get(path, {})

    def value(self, schema: Schema, name: str = "", depth: int = 0) -> Any:
        """The smallest useful value of a schema."""
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        if name in _VALUES and schema.get("type") != "array":
            return _VALUES[name]
        if "$ref" in schema:
            return self.value(self._schemas[str(schema["$ref"]).rpartition("/")[2]], name, depth)
        if schema.get("examples"):
            return schema["examples"][0]
        if several := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            return self.value(several[0], name, depth)
        if values := schema.get("enum") or ([schema["const"]] if "const" in schema else None):
            return next((each for each in values if each == _CAPTURED), values[0])
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                return [self.value(schema.get("items", {}), name, depth + 1)] if schema.get("minItems") else []
            case "integer" | "number":
                return max(int(schema.get("minimum", 1)), 1)
            case "boolean":
                return True
        return name.upper() or "…"

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        named = schema.get("required", ()) if depth < _DEPTH else ()
        return {each: self.value(properties.get(each, {}), each, depth + 1) for each in named}
