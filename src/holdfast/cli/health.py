"""The result of a check of `doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CheckHealth(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. `advice` says what to do, if anything."""

    name: str
    health: CheckHealth
    detail: str
    advice: str = ""
