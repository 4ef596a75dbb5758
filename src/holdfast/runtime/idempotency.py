"""Calls that may be made again: how one is told from another, and what its answer is kept under."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from holdfast.domain.scope import Scope
from holdfast.domain.text import checked_text
from holdfast.ports import Answer

MAX_KEY_CHARS = 256


def check_key(key: str | None) -> None:
    if key is not None:
        checked_text(key, "idempotency_key", max_chars=MAX_KEY_CHARS)


def digest_of(*parts: object) -> str:
    """A digest that tells one request from another."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True, default=_plain, sort_keys=True).encode()).hexdigest()


def _plain(value: object) -> object:
    """What JSON has no form for. A file may be large, so its digest stands in for it."""
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    # Of the others, as a text: a stored digest was made so.
    return str(value)


def digest_of_fields(request: Any) -> str:
    """Of a request's action, and of all that it asks for but the key itself."""
    return digest_of(request.action, *_fields(request))


def _fields(value: Any) -> list[object]:
    return [
        [each.name, _fields(given) if is_dataclass(given) else given]
        for each in fields(value)
        if each.name != "idempotency_key"
        for given in (getattr(value, each.name),)
    ]


def sealed(digest: str, key: str) -> str:
    """The digest as it is kept: under the caller's key, which is not.

    A digest alone would tell whoever reads the file whether a guess at a text is right, also after the text was
    forgotten. Under a key that nobody can guess it tells nothing.
    """
    return hmac.digest(key.encode(), digest.encode(), "sha256").hex()


def is_of(known: Answer, digest: str, key: str) -> bool:
    """Whether this is what the answer was given to. Answers of older versions hold the digest itself."""
    return known.digest in (sealed(digest, key), digest)


def answer_key(scope: Scope, idempotency_key: str) -> str:
    """What an answer is kept under: apps, projects and namespaces of one partition do not meet in each other's keys."""
    return digest_of(scope.app, scope.project, scope.namespace, idempotency_key)
