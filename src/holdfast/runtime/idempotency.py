"""Idempotency keys: request digests, and the stored replay state of the first call with a key."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Protocol

from holdfast.domain.checks import checked_text
from holdfast.domain.ids import OperationId
from holdfast.domain.scope import Scope
from holdfast.errors import IdempotencyConflict
from holdfast.ports import StoredResponse, Transaction

MAX_KEY_CHARS = 256


class KeyedRequest(Protocol):
    """A request that may have an idempotency key."""

    @property
    def scope(self) -> Scope: ...

    @property
    def idempotency_key(self) -> str | None: ...


def check_key(key: str | None) -> None:
    if key is not None:
        checked_text(key, "idempotency_key", max_chars=MAX_KEY_CHARS)


def digest_of(*parts: object) -> str:
    """Digest the parts of a request, to distinguish it from others."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True, default=_to_json, sort_keys=True).encode()).hexdigest()


def _to_json(value: object) -> object:
    """Convert a value that JSON cannot represent. A file may be large, so its digest is used."""
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    # Stored digests were made with these texts.
    return _dataclass_text(value) if is_dataclass(value) else str(value)


def _dataclass_text(value: Any) -> str:
    """Return the text that a dataclass has by default, with every field."""
    parts = ((each.name, getattr(value, each.name)) for each in fields(value) if each.repr)
    shown = (f"{name}={_dataclass_text(part) if is_dataclass(part) else repr(part)}" for name, part in parts)
    return f"{type(value).__qualname__}({', '.join(shown)})"


def digest_of_fields(request: Any) -> str:
    """Digest a request's action and all its fields except the idempotency key."""
    return digest_of(request.action, *_fields(request))


def _fields(value: Any) -> list[object]:
    return [
        [each.name, _fields(field_value) if is_dataclass(field_value) else field_value]
        for each in fields(value)
        if each.name != "idempotency_key"
        for field_value in (getattr(value, each.name),)
    ]


def load_replay(transaction: Transaction, request: KeyedRequest, digest: str) -> dict[str, Any] | None:
    """Return the replay state that the first call with the request's key stored; None if this is the first."""
    key, scope = str(request.idempotency_key), request.scope
    stored = transaction.records.response(scope.partition, _answer_key(scope, key))
    if stored is None:
        return None
    if not is_answer_to(stored, digest, key):
        raise IdempotencyConflict("idempotency_key: was used for another call; use a new key for each new call")
    replay_state: dict[str, Any] = json.loads(stored.body)
    return replay_state


def store_replay(
    transaction: Transaction,
    request: KeyedRequest,
    digest: str,
    operation_id: OperationId,
    replay_state: Mapping[str, Any],
    at: datetime,
) -> None:
    """Store the replay state of a request's first call, with the id of its operation."""
    key, scope = str(request.idempotency_key), request.scope
    body = json.dumps({"operation_id": operation_id, **replay_state})
    answer = StoredResponse(seal_digest(digest, key), body)
    transaction.records.put_response(scope.partition, _answer_key(scope, key), answer, at)


def seal_digest(digest: str, key: str) -> str:
    """HMAC the digest with the caller's key, which is not stored.

    With a plain digest, a reader of the file could confirm a guessed text, even after the text was forgotten. With an
    unguessable key it reveals nothing.
    """
    return hmac.digest(key.encode(), digest.encode(), "sha256").hex()


def is_answer_to(known: StoredResponse, digest: str, key: str) -> bool:
    """True if the stored answer belongs to this request. Answers of older versions hold the plain digest."""
    return known.digest in (seal_digest(digest, key), digest)


def _answer_key(scope: Scope, idempotency_key: str) -> str:
    """The key of a stored answer. It separates the apps, projects and namespaces of one partition."""
    return digest_of(scope.app, scope.project, scope.namespace, idempotency_key)
