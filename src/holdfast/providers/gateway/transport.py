"""HTTP access to the external service, with a deadline per call; failures become `ProviderError`s."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import urlencode

from holdfast.client.transport import Body, HttpReply, HttpTransport, NoResponse
from holdfast.domain.checks import checked_real
from holdfast.domain.secret import Secret
from holdfast.domain.times import checked_iso_time, from_micros
from holdfast.domain.transcript import Role
from holdfast.errors import (
    Conflict,
    IdempotencyConflict,
    InvalidInput,
    ProviderError,
    ProviderMalformed,
    ProviderMisconfigured,
    ProviderTimeout,
    ProviderUnavailable,
)

# Room for a few pages of the longest texts; a larger response cannot be valid.
_MAX_ANSWER_BYTES = 16_000_000
# Parsing a million empty lists would take longer than some deadlines.
_MAX_ANSWER_PARTS = 400_000
NOT_FOUND, CONFLICT = 404, 409
_WAITED = "did not answer within"
_LATEST_MILLIS = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    text: str
    sender: str
    role: str
    millis: int
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RemoteRecord:
    """A record of the service. `id` holds all that is needed to find it again.

    `relevant` is False for a result of a search that does not bear on the query, if the service says so.
    """

    id: str
    text: str
    session: str | None
    app: str | None
    at: datetime | None
    score: float | None = None
    metadata: Any = None
    sender: str | None = None
    role: Role | None = None
    relevant: bool = True


class RemoteMemoryService(Protocol):
    """The operations common to both APIs, within one app of the service."""

    @property
    def corrects(self) -> bool: ...

    @property
    def keeps_metadata(self) -> bool: ...

    @property
    def seals_records(self) -> bool:
        """True if added messages can be found only after a flush of their session."""

    async def add(
        self, app: str, session: str, messages: list[OutgoingMessage], key: str | None
    ) -> list[str | None] | None:
        """Add messages; return their ids, None for a forgotten one. Return None if that key was used before."""

    async def flush(self, app: str, session: str) -> None: ...

    async def search(self, app: str, query: str, top_k: int) -> list[RemoteRecord]: ...

    async def page(
        self, app: str, session: str | None, cursor: str | None, limit: int
    ) -> tuple[list[RemoteRecord], str | None]: ...

    async def find(self, app: str, record_id: str) -> RemoteRecord | None: ...

    async def forget(self, app: str, record_id: str) -> bool:
        """Forget a record; return whether it existed."""

    async def correct(self, app: str, record_id: str, text: str, reason: str | None) -> RemoteRecord: ...

    async def close(self) -> None: ...


class ServiceConnection:
    """JSON requests over one connection, with connection errors mapped to `ProviderError`s."""

    def __init__(self, url: str, key: Secret | None, timeout_seconds: float) -> None:
        self._line = HttpTransport(url, key, timeout_seconds, max_answer_bytes=_MAX_ANSWER_BYTES)

    async def post(self, path: str, payload: Mapping[str, Any], idempotency_key: str | None = None) -> HttpReply:
        return await self._send("POST", path, payload, idempotency_key)

    async def patch(self, path: str, query: Mapping[str, str], payload: Mapping[str, Any]) -> HttpReply:
        return await self._send("PATCH", f"{path}?{urlencode(query)}", payload)

    async def get(self, path: str, query: Mapping[str, str]) -> HttpReply:
        return await self._send("GET", f"{path}?{urlencode(query)}")

    async def delete(self, path: str, query: Mapping[str, str]) -> HttpReply:
        return await self._send("DELETE", f"{path}?{urlencode(query)}")

    async def close(self) -> None:
        await self._line.close()

    async def _send(
        self, method: str, path: str, payload: Mapping[str, Any] | None = None, idempotency_key: str | None = None
    ) -> HttpReply:
        body = None if payload is None else _encode_body(payload)
        headers = None if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        try:
            return await self._line.call(method, path, body, headers=headers)
        except NoResponse as lost:
            if lost.reason.startswith(_WAITED):
                failure: ProviderError = ProviderTimeout(f"the service {lost.reason}")
            else:
                after = "; it may or may not have been carried out" if lost.sent and method != "GET" else ""
                failure = ProviderUnavailable(f"the service {lost.reason}{after}")
        # Raised outside the except block, so that nothing of the request is chained.
        raise failure


def _encode_body(payload: Mapping[str, Any]) -> Body:
    try:
        return Body(json.dumps(payload, allow_nan=False).encode())
    except (TypeError, ValueError):
        problem = "holds a value that cannot be written as JSON"
    raise InvalidInput("request", problem)


def parse_response(reply: HttpReply) -> dict[str, Any]:
    """Return the response's JSON object; raise an error that quotes nothing of any other response."""
    status = reply.status
    if not 200 <= status < 300:
        raise _status_error(status)
    if sum(map(reply.body.count, (b"[", b"{", b","))) <= _MAX_ANSWER_PARTS:
        try:
            found = json.loads(reply.body)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
    raise ProviderMalformed("the service's response is not a JSON object, or is too large")


def is_key_reuse(reply: HttpReply) -> bool:
    """True if it was refused because its idempotency key was used before: the same request with another timestamp."""
    if reply.status not in (CONFLICT, 422):
        return False
    try:
        body = json.loads(reply.body)
        if "code" in body:
            return bool(body["code"] == IdempotencyConflict.code)
        # EverOS's routes use one code for every 422.
        return str(body["error"]["message"]).startswith("idempotency_key:")
    except (ValueError, RecursionError, KeyError, TypeError):
        return False


def _status_error(status: int) -> ProviderError | Conflict:
    if status in (401, 403):
        return ProviderMisconfigured(f"the service rejected the key or user of this binding (status {status})")
    if status == CONFLICT:
        return Conflict("the service already has other content under this id")
    if status == 429 or status >= 500:
        return ProviderUnavailable(f"the service is not available now (status {status})")
    return ProviderError(f"the service refused the request (status {status})")


# --- parsing responses ---


def rows_in(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = answer.get(name)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ProviderMalformed(f"the service's response has no list `{name}`")
    return found


def text_in(row: Mapping[str, Any], name: str) -> str:
    if not isinstance(found := row.get(name), str):
        raise ProviderMalformed(f"the service returned a record without its {name}")
    return found


def optional_text(row: Mapping[str, Any], name: str) -> str | None:
    return found if isinstance(found := row.get(name), str) else None


def moment_in(value: object) -> datetime | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LATEST_MILLIS:
        return from_micros(value * 1_000)
    try:
        return checked_iso_time(value, "timestamp") if isinstance(value, str) else None
    except InvalidInput:
        return None


def score_in(value: object) -> float | None:
    try:
        return float(checked_real(value, "score"))
    except InvalidInput:
        return None
