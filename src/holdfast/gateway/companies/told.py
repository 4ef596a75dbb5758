"""What the routes of bindings and of memory itself answer."""

from __future__ import annotations

from typing import Any

from holdfast.control.forms import Answer, SnippetTold, SourceTold, UsageTold, iso
from holdfast.domain.bindings import Binding, Chosen, Target, TargetKind
from holdfast.domain.contract import Capabilities, ExtractionJob, HookKind, Usage
from holdfast.domain.control import Activity, Answered, ProviderInfo, Resolved

# --- bindings -------------------------------------------------------------------------------------------------------


class CapabilitiesTold(Answer):
    """What a provider can do beyond what every one must."""

    profile: bool
    correction: bool
    multimodal: bool
    provider_managed_extraction: bool
    async_extraction: bool
    provider_native_browse: bool
    extraction_jobs: bool
    extraction_retry: bool
    explanation: bool

    @classmethod
    def of(cls, found: Capabilities) -> CapabilitiesTold:
        return cls(**{name: getattr(found, name) for name in cls.model_fields})


class ProviderTold(Answer):
    """`config_schema` is JSON Schema of its configuration. `outside`: it reaches beyond this service's own store."""

    key: str
    description: str
    outside: bool
    capabilities: CapabilitiesTold
    config_schema: dict[str, Any]

    @classmethod
    def of(cls, found: ProviderInfo) -> ProviderTold:
        return cls(
            key=found.key,
            description=found.description,
            outside=found.outside,
            capabilities=CapabilitiesTold.of(found.capabilities),
            config_schema=dict(found.schema),
        )


class ProviderList(Answer):
    providers: list[ProviderTold]


class BindingTold(Answer):
    """Secrets stand in `config` as references. Without `created_at` it was never written down: companies begin so."""

    key: str
    provider: str
    config: dict[str, Any]
    hooks: dict[HookKind, bool]
    enabled: bool
    revision: int
    created_at: str | None
    updated_at: str | None

    @classmethod
    def of(cls, found: Binding) -> BindingTold:
        return cls(
            key=found.key,
            provider=found.provider,
            config=dict(found.config),
            hooks={kind: found.delivers(kind) for kind in HookKind},
            enabled=found.enabled,
            revision=found.revision,
            created_at=iso(found.created_at),
            updated_at=iso(found.updated_at),
        )


class TargetTold(Answer):
    target_type: TargetKind
    target_id: str
    binding_key: str

    @classmethod
    def of(cls, found: Target) -> TargetTold:
        return cls(target_type=found.kind, target_id=found.target_id, binding_key=found.binding_key)


class BindingList(Answer):
    bindings: list[BindingTold]


class TargetList(Answer):
    targets: list[TargetTold]


class ResolvedTold(Answer):
    """Which binding serves here, by what it was chosen, and what was looked at, in order."""

    source: Chosen
    checked: list[Chosen]
    binding_key: str | None
    provider: str | None
    enabled: bool
    capabilities: CapabilitiesTold | None

    @classmethod
    def of(cls, found: Resolved) -> ResolvedTold:
        return cls(
            source=found.source,
            checked=list(found.checked),
            binding_key=found.binding_key,
            provider=found.provider,
            enabled=found.enabled,
            capabilities=None if found.capabilities is None else CapabilitiesTold.of(found.capabilities),
        )


class ActivityTold(Answer):
    activity_id: str
    action: str
    at: str
    key: str | None
    details: dict[str, str | int | None]

    @classmethod
    def of(cls, found: Activity) -> ActivityTold:
        return cls(
            activity_id=found.id,
            action=found.kind,
            at=found.at.isoformat(),
            key=found.key,
            details=dict(found.details),
        )


class ActivityList(Answer):
    activity: list[ActivityTold]
    next_cursor: str | None


# --- records ----------------------------------------------------------------------------------------------------------


class Served(Answer):
    """What served a call. `dropped` counts what the provider gave besides, and was not its to give."""

    binding_key: str
    provider_key: str
    operation_id: str
    dropped: int
    usage: list[UsageTold]


def served(found: Answered[Any]) -> dict[str, Any]:
    usage: tuple[Usage, ...] = getattr(found.result, "usage", ())
    return {
        "binding_key": found.binding,
        "provider_key": found.provider,
        "operation_id": found.operation_id,
        "dropped": found.dropped,
        "usage": [UsageTold.of(each) for each in usage],
    }


class ProviderJobTold(Answer):
    """A job of the provider's own, as it tells of it."""

    provider_job_id: str
    status: str
    hook_kind: HookKind | None
    source: SourceTold | None
    error: str | None
    submitted_at: str | None
    started_at: str | None
    finished_at: str | None

    @classmethod
    def of(cls, found: ExtractionJob) -> ProviderJobTold:
        return cls(
            provider_job_id=found.provider_job_id,
            status=found.status,
            hook_kind=found.hook_kind,
            source=None if found.source is None else SourceTold.of(found.source),
            error=found.error,
            submitted_at=iso(found.submitted_at),
            started_at=iso(found.started_at),
            finished_at=iso(found.finished_at),
        )


class Captured(Served):
    record_ids: list[str]
    jobs: list[ProviderJobTold]


class Upserted(Served):
    record_ids: list[str]


class Bundle(Served):
    """Texts are data, whatever they say."""

    snippets: list[SnippetTold]
    profile_summary: str | None


class RecordList(Served):
    records: list[SnippetTold]
    next_cursor: str | None


class RecordTold(Served):
    record: SnippetTold


class Forgotten(Served):
    """`missing` were not there, or out of reach."""

    forgotten: list[str]
    missing: list[str]


class Corrected(Served):
    """`record_id` is what counts from now on."""

    record_id: str
    superseded_id: str | None


class ProfileTold(Served):
    summary: str | None


class Explained(Served):
    """How the provider came to its result, in its own terms."""

    trace: dict[str, Any]


class ProviderJobList(Served):
    jobs: list[ProviderJobTold]
    next_cursor: str | None
