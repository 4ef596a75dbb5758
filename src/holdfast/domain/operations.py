"""The audit row that every call leaves, whoever made it and however it ended. It never holds text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from holdfast.domain.access import Action, Actor
from holdfast.domain.ids import OperationId
from holdfast.domain.scope import Scope


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Operation:
    """`touched` counts the records that were written, returned or removed."""

    id: OperationId
    actor: Actor
    action: Action
    scope: Scope
    outcome: Outcome
    error_code: str | None
    touched: int
    started_at: datetime
    duration_micros: int
