"""Ids, each its own type. An id carries a prefix that says what it names, and a UUIDv7, which sorts by time."""

from __future__ import annotations

from typing import NewType

MessageId = NewType("MessageId", str)
MemoryId = NewType("MemoryId", str)
TurnId = NewType("TurnId", str)
OperationId = NewType("OperationId", str)
JobId = NewType("JobId", str)

MESSAGE = "msg"
MEMORY = "mem"
TURN = "turn"
OPERATION = "op"
JOB = "job"


def kind_of(value: str) -> str:
    """The prefix of an id, or an empty string."""
    prefix, separator, _ = value.partition("_")
    return prefix if separator else ""
