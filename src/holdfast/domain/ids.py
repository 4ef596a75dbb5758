"""Ids, each its own type. An id is a prefix for the kind of thing, and a UUIDv7, which sorts by time."""

from __future__ import annotations

from typing import Annotated, NewType

from holdfast.domain.arguments import Rule
from holdfast.domain.checks import checked_text

MessageId = NewType("MessageId", str)
MemoryId = NewType("MemoryId", str)
TurnId = NewType("TurnId", str)
OperationId = NewType("OperationId", str)
JobId = NewType("JobId", str)
ResourceId = NewType("ResourceId", str)
EventId = NewType("EventId", str)
BindingId = NewType("BindingId", str)
DeliveryId = NewType("DeliveryId", str)
CostEventId = NewType("CostEventId", str)
FinanceEventId = NewType("FinanceEventId", str)

MESSAGE = "msg"
MEMORY = "mem"
TURN = "turn"
OPERATION = "op"
JOB = "job"
RESOURCE = "r"
EVENT = "evt"
BINDING = "bnd"
DELIVERY = "dlv"
COST_EVENT = "cost"
FINANCE_EVENT = "fin"
PROPOSAL = "prp"
MAX_ID_CHARS = 256


def kind_of(value: str) -> str:
    """Return the prefix of an id, or an empty string."""
    prefix, separator, _ = value.partition("_")
    return prefix if separator else ""


def checked_id(value: object, field: str) -> str:
    """Validate the form of an id. Only the store knows whether it exists."""
    return checked_text(value, field, max_chars=MAX_ID_CHARS)


ID_RULE = Rule(checked_id, "ID", 1, MAX_ID_CHARS)
Id = Annotated[str, ID_RULE]
