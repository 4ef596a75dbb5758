"""Timestamps in EverOS's format."""

from __future__ import annotations

from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    """Format in UTC, as 2026-05-28T11:30:36.125Z."""
    return (
        moment.astimezone(UTC)
        .isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
        .replace("+00:00", "Z")
    )
