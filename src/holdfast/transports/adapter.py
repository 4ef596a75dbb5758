"""The adapter of all transports: it checks an envelope, performs its operation, and writes the response.

Every envelope whose operation exists leaves one operation row, also if it is refused here. The runtime's gate decides
who may do what; the adapter adds only the policy of transports and the budgets of the profile.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, TypeVar

from pydantic_core import to_json

from holdfast import errors
from holdfast.domain.access import Action, Actor, is_read
from holdfast.domain.capabilities import Gate, MemoryCapabilityCatalog, snapshot
from holdfast.domain.governance import CountedRecords, Governance
from holdfast.domain.identity import DEFAULT_CHANNEL, MemoryIdentity, MemoryScope
from holdfast.domain.json_values import to_plain
from holdfast.domain.runtime_api.writing import MemoryMaintainReport, MemoryWriteRequest
from holdfast.domain.transcript_turns import View
from holdfast.domain.unknown_fields import explain_unknown
from holdfast.errors import AccessDenied, CapabilityUnavailable, HoldfastError, InvalidInput, Unauthenticated
from holdfast.ports import Service, Verb
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.requests import Read, Write
from holdfast.runtime.transcripts.keyed_calls import KeyedWrite, TracedRead, TracedResult
from holdfast.runtime.transcripts.maintain import UNDER_WAY
from holdfast.sdk.runtime import AsyncMemoryRuntime
from holdfast.transports.decoder import (
    OPERATION,
    UNCHANGED,
    AdapterOperation,
    EnvelopeError,
    operations,
    read_object,
)
from holdfast.transports.envelope import (
    AcceptedResponse,
    AdapterEnvelope,
    AdapterResponse,
    DuplicatedResponse,
    EnvelopeSource,
    ErrorKey,
    QueuedResponse,
    RejectedResponse,
)
from holdfast.transports.reasons import withhold_quoted

T = TypeVar("T")
log = logging.getLogger("holdfast.transports")
SUBSCRIBE = "subscribe"
_MAX_COUNTED_SPACES = 1_024
_KEYS: tuple[tuple[type[HoldfastError], ErrorKey], ...] = (
    (errors.CapabilityUnavailable, ErrorKey.UNSUPPORTED_OPERATION),
    (errors.Unauthenticated, ErrorKey.UNAUTHORIZED),
    (errors.AccessDenied, ErrorKey.FORBIDDEN),
    (errors.NotFound, ErrorKey.NOT_FOUND),
    (errors.InvalidInput, ErrorKey.RUNTIME_REJECTED),
    (errors.Conflict, ErrorKey.RUNTIME_REJECTED),
    (errors.StoreBusy, ErrorKey.RUNTIME_UNAVAILABLE),
    (errors.StoreUnavailable, ErrorKey.RUNTIME_UNAVAILABLE),
    (errors.StoreClosed, ErrorKey.RUNTIME_UNAVAILABLE),
    (errors.EmbedderUnavailable, ErrorKey.RUNTIME_UNAVAILABLE),
    (errors.ModelUnavailable, ErrorKey.RUNTIME_UNAVAILABLE),
)


@dataclass(frozen=True, slots=True)
class AdapterPolicy:
    """The rules of transports. A write that changes memory needs an idempotency key."""

    auth_required: bool = True
    source_required: bool = True
    idempotency_required: bool = True
    private_data_allowed: bool = False


@dataclass(frozen=True, slots=True)
class AdapterCaller:
    """The authenticated caller of an envelope, and the memory that it has if it names no other."""

    service: Service
    actor: Actor
    identity: MemoryIdentity

    @classmethod
    def of(cls, runtime: AsyncMemoryRuntime) -> AdapterCaller:
        """The host of a runtime in this process."""
        return cls(runtime.service, runtime.actor, runtime.governance.identity)

    def owned_by(self, source: EnvelopeSource) -> MemoryIdentity:
        """The memory of an envelope. The gate decides whether it may be the caller's."""
        own = self.identity
        if source.owner_id is None and source.agent_id is None:
            return own
        subject = own.subject_id if source.owner_id is None else source.owner_id
        agent = own.agent_id if source.agent_id is None else source.agent_id
        return replace(own, subject_id=subject, agent_id=agent)


@dataclass(slots=True)
class KeyedService:
    """A service for one call: it notes the id of its operation row, and whether its key was known."""

    service: Service
    operation: AdapterOperation
    request_digest: str
    key: str | None
    performed: TracedResult[Any] | None = field(default=None, init=False)

    @property
    def sync_safe(self) -> bool:
        return False

    async def perform(self, actor: Actor, action: Action, make: Callable[[], Verb[T]], *, space: str) -> T:
        found: TracedResult[Any] = await self.service.perform(actor, action, lambda: self._wrap(make()), space=space)
        self.performed = found
        report: T = found.report
        return report

    def _wrap(self, verb: Verb[Any]) -> Verb[Any]:
        if isinstance(verb, Write):
            return KeyedWrite(verb, self.operation.report, self.request_digest, self.key)
        assert isinstance(verb, Read)
        return TracedRead(verb)

    async def close(self) -> None:
        """Leave the service open: it is not only this caller's."""


class TransportAdapter:
    """Handles envelopes for runtimes of one profile."""

    def __init__(self, governance: Governance, policy: AdapterPolicy | None = None) -> None:
        self._governance = governance
        self._policy = policy or AdapterPolicy()
        self._counted: dict[str, CountedRecords] = {}

    @property
    def governance(self) -> Governance:
        """The profile and the capabilities."""
        return self._governance

    async def handle(self, caller: AdapterCaller, envelope: AdapterEnvelope) -> AdapterResponse:
        """Perform the operation of an envelope. A refusal, or a failure of the runtime, is a response, too."""
        envelope = envelope if envelope.request_id else replace(envelope, request_id=uuid.uuid4().hex)
        operation = operations().get(envelope.operation)
        if operation is None:
            return _rejection(envelope, ErrorKey.UNSUPPORTED_OPERATION, _unknown_operation(envelope.operation))
        try:
            request = self._request_of(envelope, operation)
        except EnvelopeError as error:
            return await _refuse(caller, envelope, operation, error)
        except HoldfastError as error:
            return await _refuse(caller, envelope, operation, EnvelopeError(_key_of(error), error))
        identity = caller.owned_by(envelope.source)
        keyed = _keyed_service(caller, envelope, operation, identity, request)
        governance = replace(self._governance, identity=identity, counted=self._counted_in(identity.space))
        runtime = AsyncMemoryRuntime(keyed, caller.actor, governance, _conversation_of(envelope.source))
        runtime._explained = True  # the caller reads the reason in the report
        try:
            report = await getattr(runtime, operation.method)(*(() if request is None else (request,)))
        except HoldfastError as error:
            return _rejection(envelope, _key_of(error), error)
        assert keyed.performed is not None
        return _to_response(envelope, keyed.performed, report)

    def _request_of(self, envelope: AdapterEnvelope, operation: AdapterOperation) -> Any:
        """Check an envelope, and return the request of its payload."""
        self._check_policy(envelope, operation)
        self._check_size(envelope, operation)
        payload = read_object(envelope.payload) if isinstance(envelope.payload, str) else dict(envelope.payload)
        named = payload.pop(OPERATION, envelope.operation)
        if named != envelope.operation:
            problem = f"differs from that of the envelope, {operation.name}; leave it out, or send the same"
            raise EnvelopeError(ErrorKey.OPERATION_MISMATCH, InvalidInput(OPERATION, problem))
        request = operation.decode(payload)
        if isinstance(request, MemoryWriteRequest):
            request = _with_source_chat(request, envelope)
        private = getattr(request, "include_private", False) or getattr(request, "view", None) == View.RAW_OWNER_ONLY
        if private and not self._policy.private_data_allowed:
            raise AccessDenied("private data does not leave over a transport; ask without it, or use the library")
        return request

    def _check_policy(self, envelope: AdapterEnvelope, operation: AdapterOperation) -> None:
        policy = self._policy
        if policy.auth_required and not envelope.auth.authenticated:
            raise Unauthenticated("the transport did not authenticate the sender; send a key")
        self._governance.require(f"transport_{envelope.transport}")
        if policy.source_required and not (envelope.source.source_id or "").strip():
            raise InvalidInput("source.source_id", "is missing; name the sender")
        if (
            policy.idempotency_required
            and not is_read(operation.action)
            and not (envelope.idempotency_key or "").strip()
        ):
            raise InvalidInput("idempotency_key", f"is missing: {operation.name} needs one, so that a retry is safe")
        if operation.action is Action.MAINTAIN and self._governance.catalogue["maintain"].reason is Gate.CONFIGURED:
            raise CapabilityUnavailable("maintain: no model is configured here; HOLDFAST_MODEL names one")

    def _check_size(self, envelope: AdapterEnvelope, operation: AdapterOperation) -> None:
        budget, payload = self._governance.budget, envelope.payload
        # A snapshot that was exported can be imported.
        most = budget.snapshot_bytes if operation.action is Action.IMPORT else budget.http_body_bytes
        body = payload.encode(*UNCHANGED) if isinstance(payload, str) else to_json(payload)
        if (size := len(body)) > most:
            problem = f"has {size:,} bytes; {self._governance.profile.name} allows {most:,}: send less at once"
            raise EnvelopeError(ErrorKey.PAYLOAD_TOO_LARGE, InvalidInput("payload", problem))

    def _counted_in(self, space: str) -> CountedRecords:
        if space not in self._counted and len(self._counted) >= _MAX_COUNTED_SPACES:
            self._counted.clear()
        return self._counted.setdefault(space, CountedRecords())


def _keyed_service(
    caller: AdapterCaller,
    envelope: AdapterEnvelope,
    operation: AdapterOperation,
    identity: MemoryIdentity,
    request: Any,
) -> KeyedService:
    if not envelope.idempotency_key or is_read(operation.action):
        return KeyedService(caller.service, operation, "", None)
    digest = digest_of(operation.action, to_plain(identity), to_plain(request))
    return KeyedService(caller.service, operation, digest, envelope.idempotency_key)


def _conversation_of(source: EnvelopeSource) -> MemoryScope | None:
    if source.chat_id is None:
        return None
    return MemoryScope(DEFAULT_CHANNEL if source.channel is None else source.channel, source.chat_id)


def _with_source_chat(request: MemoryWriteRequest, envelope: AdapterEnvelope) -> MemoryWriteRequest:
    """Complete the chat of procedures. One that comes from another process must say in which chat it was learned."""
    if request.skills is None:
        return request
    chat_id = envelope.source.chat_id
    writes = tuple(replace(each, source_chat_id=each.source_chat_id or chat_id) for each in request.skills.writes)
    if envelope.is_remote and any(each.source_chat_id is None for each in writes):
        raise InvalidInput("source_chat_id", "is missing; name the chat in which the procedure was learned")
    return replace(request, skills=replace(request.skills, writes=writes))


# --- responses --------------------------------------------------------------------------------------------------------


def _to_response(envelope: AdapterEnvelope, performed: TracedResult[Any], report: Any) -> AdapterResponse:
    request_id, audit_id = envelope.request_id or "", envelope.audit_id or performed.operation_id
    if isinstance(report, MemoryCapabilityCatalog):
        report = snapshot(report)
    if performed.repeated:
        key = envelope.idempotency_key or ""
        return DuplicatedResponse(request_id=request_id, audit_id=audit_id, idempotency_key=key, report=report)
    if isinstance(report, MemoryMaintainReport) and report.reason == UNDER_WAY:
        return QueuedResponse(request_id=request_id, audit_id=audit_id, queue=report.operation, report=report)
    return AcceptedResponse(request_id=request_id, audit_id=audit_id, report=report)


async def _refuse(
    caller: AdapterCaller, envelope: AdapterEnvelope, operation: AdapterOperation, refused: EnvelopeError
) -> RejectedResponse:
    """Refuse an envelope inside the gate, so that the refusal has its operation row."""

    def fail() -> NoReturn:
        raise refused.cause

    try:
        await caller.service.perform(caller.actor, operation.action, fail, space=caller.identity.space)
    except HoldfastError as error:
        return _rejection(envelope, refused.key if error is refused.cause else _key_of(error), error)
    raise AssertionError("the gate returned a result of a refused call")


def _rejection(envelope: AdapterEnvelope, key: ErrorKey, error: HoldfastError) -> RejectedResponse:
    reason = str(error)
    if key is ErrorKey.RUNTIME_FAILED or key is ErrorKey.RUNTIME_UNAVAILABLE:
        # The message may contain the store's location: it goes to the log, for the operator only.
        log.error("%s: %s", error.code, error)
        reason = error.public or (type(error).__doc__ or "").strip()
    return RejectedResponse(
        request_id=envelope.request_id or "",
        audit_id=envelope.audit_id or error.operation_id,
        error_key=key,
        reason=withhold_quoted(reason),
    )


def _key_of(error: HoldfastError) -> ErrorKey:
    return next((key for kind, key in _KEYS if isinstance(error, kind)), ErrorKey.RUNTIME_FAILED)


def _unknown_operation(wrong: str) -> HoldfastError:
    if wrong == SUBSCRIBE:
        return InvalidInput(OPERATION, "subscribe needs a stream, and this transport has none; ask again instead")
    return InvalidInput(OPERATION, explain_unknown(wrong, tuple(operations()), "operation")[1])
