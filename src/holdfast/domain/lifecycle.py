"""Admission of the runtime's operations by the mode of the host, and the report of each operation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum

from holdfast.domain.access import Action
from holdfast.domain.checks import checked_flag, checked_instance, checked_whole
from holdfast.domain.ids import EventId
from holdfast.domain.presentable import Presentable
from holdfast.domain.profiles import Pressure, pressure_of

RETRY_AFTER_MS = 1_000
_MOST_MS = 10**12


class Trigger(StrEnum):
    """The trigger of an operation."""

    SDK_CALL = "sdk_call"
    BOOT_RECOVERY = "boot_recovery"
    POST_REPLY = "post_reply"
    DEFERRED_DUE = "deferred_due"
    OPERATOR_REQUESTED = "operator_requested"
    SNAPSHOT_TRANSFER = "snapshot_transfer"
    REPLAY_INSPECTION = "replay_inspection"


class Disposition(StrEnum):
    EXECUTE_NOW = "execute_now"
    DEFER = "defer"
    SKIP = "skip"
    REJECT = "reject"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ModeInput:
    """The current mode of the host. By default it is up, in the foreground and idle."""

    profile: str | None = None
    booting: bool = False
    pairing_required: bool = False
    pairing_state_known: bool = True
    foreground: bool = True
    voice_exclusive_active: bool = False
    config_active: bool = False
    config_activity_phase: str | None = None
    maintenance_active: bool = False
    recovery_safe_mode_active: bool = False
    pressure: Pressure = Pressure.NORMAL
    post_reply_defer_elapsed_ms: int | None = None

    @property
    def busy_with(self) -> str | None:
        """Name of the first state that keeps the host busy, or None."""
        unsettled = self.pairing_required or not self.pairing_state_known
        states = {
            "recovery_safe_mode": self.recovery_safe_mode_active,
            "booting": self.booting,
            "pairing": unsettled,
            "voice_exclusive": self.voice_exclusive_active,
            "config_active": self.config_active,
            "maintenance_active": self.maintenance_active,
        }
        return next((name for name, holds in states.items() if holds), None)


def checked_mode(value: object) -> ModeInput:
    """Return the mode, or raise `InvalidInput` that names the field."""
    mode = checked_instance(value, ModeInput, "mode_input")
    for part in fields(mode):
        if part.type == "bool":
            checked_flag(getattr(mode, part.name), f"mode_input.{part.name}")
    pressure_of(mode.pressure)
    if mode.post_reply_defer_elapsed_ms is not None:
        checked_whole(mode.post_reply_defer_elapsed_ms, "mode_input.post_reply_defer_elapsed_ms", 0, _MOST_MS)
    return mode


@dataclass(frozen=True, slots=True)
class Admission(Presentable):
    """The decision whether an operation may run now; if not, the reason and when to retry."""

    disposition: Disposition
    reason: str | None = None
    retry_after_ms: int | None = None
    private_depth_allowed: bool = True


_TRANSFERS = frozenset(
    {Action.EXPORT, Action.IMPORT, Action.EXPORT_TRANSCRIPT, Action.EXPORT_SPACE, Action.IMPORT_SPACE}
)


def admit(action: Action, mode: ModeInput, pressure: Pressure = Pressure.NORMAL) -> Admission:
    """Decide whether `action` may run while the host is in this mode. The higher of both pressures counts."""
    worst = max(pressure, mode.pressure, key=list(Pressure).index)
    busy = mode.busy_with or (None if worst is Pressure.NORMAL else f"pressure_{worst}")
    if action in _TRANSFERS and mode.recovery_safe_mode_active:
        return Admission(Disposition.REJECT, "recovery_safe_mode", private_depth_allowed=False)
    if action is Action.MAINTAIN and busy is not None:
        return Admission(Disposition.DEFER, busy, RETRY_AFTER_MS, private_depth_allowed=False)
    # A busy host delays no reads; it only withholds private content from them.
    private = busy is None and mode.foreground
    return Admission(Disposition.EXECUTE_NOW, private_depth_allowed=private)


@dataclass(frozen=True, slots=True)
class LifecycleReport(Presentable):
    """The report of one operation. `error_stage` is where it failed, if it did."""

    operation: Action
    trigger: Trigger
    admission: Admission
    event_id: EventId | None
    started_at: datetime
    finished_at: datetime
    success: bool
    changed: bool
    result_summary: str
    error_stage: str | None = None
