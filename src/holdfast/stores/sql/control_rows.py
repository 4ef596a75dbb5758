"""Convert between the JSON in rows of the control plane and domain values. The JSON is ASCII, so that any text from
outside can be stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any

from holdfast.domain.contract import (
    AttributionMode,
    BillingType,
    HookContext,
    HookKind,
    SourceKind,
    SourcePayload,
    SourceRef,
    Usage,
)
from holdfast.domain.ids import CostEventId, OperationId
from holdfast.domain.jobs import Cause
from holdfast.domain.operations import Attribution
from holdfast.domain.times import from_micros, to_micros

# The details of a call that asks no provider begin with this. Only the prefix is compared: not every database can parse
# the rest, which may hold any text of a provider.
UNASKED = '{"asked":false'
_SOURCE_PARTS = tuple(field.name for field in fields(SourceRef))


def as_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _drop_empty(**values: Any) -> dict[str, Any]:
    """Drop empty values."""
    return {name: value for name, value in values.items() if value not in (None, (), {}, [], 0)}


def source_entry(source: SourceRef | None) -> dict[str, Any] | None:
    if source is None:
        return None
    return {part: value for part in _SOURCE_PARTS if (value := getattr(source, part)) is not None}


def source_of(entry: Mapping[str, Any]) -> SourceRef:
    return SourceRef(**{**entry, "kind": SourceKind(entry["kind"])})


def hook_entry(hook: HookContext | None) -> dict[str, Any] | None:
    if hook is None:
        return None
    return {
        "kind": hook.kind,
        "hook_id": hook.hook_id,
        "triggered_at": to_micros(hook.triggered_at),
        **_drop_empty(actor_agent_id=hook.actor_agent_id, run_id=hook.run_id),
    }


def hook_of(entry: Mapping[str, Any]) -> HookContext:
    return HookContext(
        kind=HookKind(entry["kind"]),
        hook_id=entry["hook_id"],
        triggered_at=from_micros(entry["triggered_at"]),
        actor_agent_id=entry.get("actor_agent_id"),
        run_id=entry.get("run_id"),
    )


def usage_entry(usage: Usage) -> dict[str, Any]:
    """Cents are stored as text, so that decimals stay exact."""
    return {
        "provider": usage.provider,
        "billing_type": usage.billing_type,
        "attribution_mode": usage.attribution_mode,
        "currency": usage.currency,
        "cost_cents": None if usage.cost_cents is None else str(usage.cost_cents),
        "latency_ms": usage.latency_ms,
        **_drop_empty(
            biller=usage.biller,
            model=usage.model,
            input_tokens=usage.input_tokens,
            cached_input_tokens=usage.cached_input_tokens,
            output_tokens=usage.output_tokens,
            embedding_tokens=usage.embedding_tokens,
            details=dict(usage.details),
        ),
    }


def usage_of(entry: Mapping[str, Any]) -> Usage:
    cents = entry.get("cost_cents")
    return Usage(
        **{
            **entry,
            "billing_type": BillingType(entry["billing_type"]),
            "attribution_mode": AttributionMode(entry["attribution_mode"]),
            "cost_cents": None if cents is None else Decimal(cents),
        }
    )


def attribution_json(attribution: Attribution) -> str | None:
    """Return None if it holds only a binding, which has its own column: true of nearly every call."""
    unasked = {} if attribution.asked else {"asked": False}  # first: see `UNASKED`
    entry = unasked | _drop_empty(
        provider=attribution.provider,
        source=source_entry(attribution.source),
        hook=hook_entry(attribution.hook),
        usage=[usage_entry(usage) for usage in attribution.usage],
        mode=attribution.mode,
        cost_events=attribution.cost_events,
        handles=attribution.handles,
        dropped=attribution.dropped,
    )
    return as_json(entry) if entry or attribution.binding is None else None


def attribution_of(binding: str | None, details: str | None) -> Attribution | None:
    if details is None:
        return None if binding is None else Attribution(binding)
    entry = json.loads(details)
    return Attribution(
        binding=binding,
        provider=entry.get("provider"),
        source=source_of(entry["source"]) if "source" in entry else None,
        hook=hook_of(entry["hook"]) if "hook" in entry else None,
        usage=tuple(usage_of(each) for each in entry.get("usage", ())),
        mode=AttributionMode(entry["mode"]) if "mode" in entry else None,
        cost_events=tuple(CostEventId(each) for each in entry.get("cost_events", ())),
        handles=tuple(entry.get("handles", ())),
        dropped=entry.get("dropped", 0),
        asked=entry.get("asked", True),
    )


def cause_json(cause: Cause | None) -> str | None:
    if cause is None:
        return None
    return as_json(
        _drop_empty(
            operation_id=cause.operation_id,
            binding=cause.binding,
            hook=hook_entry(cause.hook),
            source=source_entry(cause.source),
        )
    )


def cause_of(text: str | None) -> Cause | None:
    if text is None:
        return None
    entry = json.loads(text)
    return Cause(
        operation_id=OperationId(entry["operation_id"]) if "operation_id" in entry else None,
        binding=entry.get("binding"),
        hook=hook_of(entry["hook"]) if "hook" in entry else None,
        source=source_of(entry["source"]) if "source" in entry else None,
    )


def payload_json(payload: SourcePayload) -> str:
    return as_json(
        {
            "text": payload.text,
            "mime_type": payload.mime_type,
            "metadata": dict(payload.metadata),
            "object": None if payload.object is None else dict(payload.object),
        }
    )


def payload_of(text: str) -> SourcePayload:
    return SourcePayload(**json.loads(text))
