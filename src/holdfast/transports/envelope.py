"""The envelope of a request to a runtime, and the four kinds of its response.

A transport writes its own request as an `AdapterEnvelope`, and the response as its own. `auth` is what the transport
verified, never what a request says of itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from holdfast.domain.presentable import Presentable


class TransportKind(StrEnum):
    SDK = "sdk"
    CLI = "cli"
    HTTP = "http"
    WEBHOOK = "webhook"
    WSS = "wss"
    MQTT = "mqtt"
    MCP = "mcp"
    A2A = "a2a"


class TransportMode(StrEnum):
    IN_PROCESS = "in_process"
    CLIENT = "client"
    SERVER = "server"
    BIDIRECTIONAL = "bidirectional"


@dataclass(frozen=True, slots=True)
class EnvelopeSource:
    """The sender, the owner of the memory, and the conversation.

    Without `owner_id` (a subject) and `agent_id`, the memory is the caller's own. A request that names no conversation
    is about `chat_id` of `channel`.
    """

    source_id: str | None = None
    source_kind: str | None = None
    agent_id: str | None = None
    owner_id: str | None = None
    channel: str | None = None
    chat_id: str | None = None


@dataclass(frozen=True, slots=True)
class EnvelopeAuth:
    """The result of the transport's authentication. Without one, nobody was authenticated."""

    authenticated: bool = False
    auth_kind: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class AdapterEnvelope:
    """A request. Repeated with the same `idempotency_key`, it changes nothing and gets the first report again.

    The payload is an object, or its JSON.
    """

    operation: str
    payload: Mapping[str, Any] | str = field(default_factory=dict)
    transport: TransportKind = TransportKind.SDK
    mode: TransportMode = TransportMode.IN_PROCESS
    source: EnvelopeSource = EnvelopeSource()
    auth: EnvelopeAuth = EnvelopeAuth()
    request_id: str | None = None
    idempotency_key: str | None = None
    audit_id: str | None = None

    @property
    def is_remote(self) -> bool:
        return self.mode is not TransportMode.IN_PROCESS


class ResponseStatus(StrEnum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    QUEUED = "queued"
    DUPLICATED = "duplicated"


class ErrorKey(StrEnum):
    """The kind of a rejection. The reason has the words."""

    INVALID_JSON = "invalid_json"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    UNSUPPORTED_OPERATION = "unsupported_operation"
    OPERATION_MISMATCH = "operation_mismatch"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    RUNTIME_REJECTED = "runtime_rejected"
    RUNTIME_UNAVAILABLE = "runtime_unavailable"
    RUNTIME_FAILED = "runtime_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterResponse(Presentable):
    """The common part. `audit_id` is the sender's, else the id of the operation row; None if the call left no row."""

    status: ResponseStatus
    request_id: str
    audit_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedResponse(AdapterResponse):
    """The operation was performed. Its report may still say that it refused a candidate."""

    status: ResponseStatus = field(default=ResponseStatus.ACCEPTED, init=False)
    report: Presentable | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedResponse(AdapterResponse):
    """The operation continues in the background. Repeated with the same key, it has the report as of then."""

    status: ResponseStatus = field(default=ResponseStatus.QUEUED, init=False)
    queue: str
    report: Presentable | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicatedResponse(AdapterResponse):
    """The key was used for this request before, and nothing changed. `report` is the stored one of the first call."""

    status: ResponseStatus = field(default=ResponseStatus.DUPLICATED, init=False)
    idempotency_key: str
    report: Presentable | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedResponse(AdapterResponse):
    """Nothing was changed. `reason` says what was wrong, and what to do."""

    status: ResponseStatus = field(default=ResponseStatus.REJECTED, init=False)
    error_key: ErrorKey
    reason: str
