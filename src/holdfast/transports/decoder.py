"""The JSON decoder of all transports: payloads become the runtime's own requests, with their limits and defaults.

A payload has the fields of its request, by name; a field with a second name may have either. An unknown field is
refused. `write` has three forms: one procedure, several `writes` with their `source`, or `candidates`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any, get_type_hints

from pydantic_core import from_json, to_json

from holdfast.domain.access import Action
from holdfast.domain.arguments import Argument
from holdfast.domain.runtime_api.exchange import ContinuitySnapshot, MemoryImportRequest
from holdfast.domain.runtime_api.skills import ProceduralWrites, RuntimeSkillWrite
from holdfast.domain.runtime_api.writing import MemoryWriteRequest
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.runtime.verb_entry import VerbEntry
from holdfast.sdk.runtime import AsyncMemoryRuntime
from holdfast.sdk.verbs import OPERATIONS
from holdfast.transports.envelope import AdapterEnvelope, EnvelopeAuth, ErrorKey, TransportKind, TransportMode
from holdfast.wire import JsonCodec

# A member of a payload that repeats the envelope's operation.
OPERATION = "operation"
# How a transport passes on a body that may not be UTF-8: it is refused as JSON, with its operation row.
UNCHANGED = ("utf-8", "surrogateescape")


class EnvelopeError(Exception):
    """An envelope is refused before its operation runs. `cause` is the error for its operation row."""

    def __init__(self, key: ErrorKey, cause: HoldfastError) -> None:
        super().__init__(str(cause))
        self.key = key
        self.cause = cause


class AdapterOperation:
    """One operation: its action, the runtime's method, and the codecs of its request and its report."""

    def __init__(self, entry: VerbEntry) -> None:
        self.method = entry.name
        self.name = entry.name.rstrip("_")
        self.action = Action(self.name)
        self.entry = entry
        self.request = (
            None if entry.request is None else JsonCodec(entry.request, closed=True, names=entry.names, bounded=True)
        )
        hints = get_type_hints(getattr(AsyncMemoryRuntime, entry.name))
        self.report = JsonCodec(hints["return"], closed=False)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return () if self.request is None else replace(self.entry, hidden=()).arguments

    def decode(self, payload: Mapping[str, Any]) -> Any:
        """Return the request of a payload, or raise `InvalidInput` that names the field; None if it takes none."""
        if self.request is None:
            if payload:
                raise InvalidInput("payload", f"must be empty: {self.name} takes no fields")
            return None
        if self.action is Action.WRITE:
            return _decode_write(self.request, payload)
        if self.action is Action.IMPORT:
            return _decode_import(self.request, payload)
        return self.request.decode(to_json(payload))


@cache
def operations() -> Mapping[str, AdapterOperation]:
    """Return the operations by name."""
    return {each.name: each for each in map(AdapterOperation, OPERATIONS.values())}


# The two other forms of a write.
SEVERAL = JsonCodec(ProceduralWrites, closed=True, bounded=True)
ONE = JsonCodec(RuntimeSkillWrite, closed=True, bounded=True)
_SNAPSHOT = JsonCodec(ContinuitySnapshot, closed=True, bounded=True)
_OF_ONE = frozenset(each.name for each in fields(RuntimeSkillWrite))


def _decode_write(codec: JsonCodec, payload: Mapping[str, Any]) -> MemoryWriteRequest:
    if "writes" in payload:
        return MemoryWriteRequest(skills=SEVERAL.decode(to_json(payload)))
    if not _OF_ONE & payload.keys():
        request: MemoryWriteRequest = codec.decode(to_json(payload))
        return request
    one = {name: value for name, value in payload.items() if name != "source"}
    source = {"source": payload["source"]} if "source" in payload else {}
    writes = (ONE.decode(to_json(one)),)
    return MemoryWriteRequest(skills=replace(SEVERAL.decode(to_json({"writes": [], **source})), writes=writes))


def _decode_import(codec: JsonCodec, payload: Mapping[str, Any]) -> MemoryImportRequest:
    """Decode an import. Its snapshot is the document of an export, as text or as JSON, or the report's own snapshot."""
    snapshot = payload.get("snapshot")
    if not isinstance(snapshot, Mapping) or "kind" in snapshot:
        request: MemoryImportRequest = codec.decode(to_json(payload))
        return request
    request = codec.decode(to_json({**payload, "snapshot": ""}))
    return replace(request, snapshot=_SNAPSHOT.decode(to_json(snapshot)))


def read_object(body: str | bytes) -> dict[str, Any]:
    """Read a JSON object, or raise `EnvelopeError`; an empty body is an empty object."""
    sent = body.encode(*UNCHANGED) if isinstance(body, str) else body
    try:
        found = from_json(sent, allow_inf_nan=False) if sent.strip() else {}
    except (ValueError, RecursionError):
        problem = "is not valid JSON; check its syntax"
    else:
        if isinstance(found, dict):
            return found
        problem = "must be a JSON object"
    raise EnvelopeError(ErrorKey.INVALID_JSON, InvalidInput("body", problem))


_ENVELOPE = JsonCodec(AdapterEnvelope, closed=True)


def read_envelope(body: bytes, transport: TransportKind, mode: TransportMode, auth: EnvelopeAuth) -> AdapterEnvelope:
    """Read an envelope that was sent as JSON. Transport and `auth` are what the receiver knows, not what it says."""
    read_object(body)
    try:
        envelope: AdapterEnvelope = _ENVELOPE.decode(body)
    except InvalidInput as error:
        raise EnvelopeError(ErrorKey.INVALID_JSON, error) from None
    return replace(envelope, transport=transport, mode=mode, auth=auth)
