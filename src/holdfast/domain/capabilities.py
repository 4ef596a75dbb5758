"""The capabilities of a memory under a profile, and the reason why one is missing.

A capability is visible if five gates allow it: the profile has it, it is built in, it is configured, it is permitted,
and the privacy policy allows it. The first gate that refuses is the reason. Operations check the catalogue before they
run, so that what is shown and what is done cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Literal

from holdfast.domain.checks import checked_flag
from holdfast.domain.presentable import Presentable
from holdfast.domain.profiles import Backend, Profile
from holdfast.errors import InvalidInput

SCHEMA = "holdfast.platform.capability.v1"


class Gate(StrEnum):
    """The gates of a capability, in the order in which they are checked."""

    PROFILE = "profile"
    BUILT_IN = "built_in"
    CONFIGURED = "configured"
    PERMITTED = "permitted"
    PRIVACY = "privacy"


class Section(StrEnum):
    """The section of a capability in a snapshot."""

    MEMORY = "memory"
    LIFECYCLE = "lifecycle"
    VALIDATION = "validation"
    ADAPTER = "adapter"
    ENTRY = "entry"
    INDEXED_RECALL = "indexed_recall"


@dataclass(frozen=True, slots=True)
class Privacy(Presentable):
    """The privacy policy: what may leave memory. The defaults are the standard policy."""

    prompt_projection: bool = True
    private_plane_projection: bool = False
    export_import: bool = True

    def __post_init__(self) -> None:
        # "no" is truthy in Python: accepted as a flag, it would disclose private content.
        for name in self.__slots__:
            checked_flag(getattr(self, name), f"privacy.{name}")


PrivacyRule = Literal["prompt_projection", "private_plane_projection", "export_import"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A capability that a runtime has, or will have.

    `built` is its implementation, as `module:name`; None if there is none yet. `privacy` is the part of the policy that
    must allow it. With `needs_model` it is not configured without a model.
    """

    name: str
    section: Section
    built: str | None = None
    needs_model: bool = False
    privacy: PrivacyRule | None = None


# The implementations of the capabilities that are listed by `_offers` below.
_BUILT = {
    "recall": "holdfast.runtime.transcripts.recall:RecallForHost",
    "project": "holdfast.runtime.transcripts.project:Project",
    "project_private_planes": "holdfast.domain.projection_block:private_gate",
    "inspect": "holdfast.runtime.transcripts.inspect:Inspect",
    "commit_transcript": "holdfast.runtime.transcripts.commit:CommitTranscript",
    "finalize_turn_and_maintain": "holdfast.runtime.transcripts.finalize:FinalizeTurn",
    "export_transcript": "holdfast.runtime.transcripts.replay:ExportTranscript",
    "request_transcript_lifecycle": "holdfast.runtime.transcripts.lifecycle:RequestLifecycle",
    "replay": "holdfast.runtime.transcripts.ledger:ReplayLedger",
    "replay_transcript": "holdfast.runtime.transcripts.replay:ReplayTranscript",
    "repair_transcript": "holdfast.runtime.transcripts.repair:RepairTranscript",
    "write": "holdfast.runtime.transcripts.write:WriteMemory",
    "list_runtime_skills": "holdfast.runtime.skills.read_skills:ListSkills",
    "get_runtime_skill": "holdfast.runtime.skills.read_skills:GetSkill",
    "edit_runtime_skill": "holdfast.runtime.skills.change_skills:EditSkill",
    "set_runtime_skill_enabled": "holdfast.runtime.skills.change_skills:SetSkillEnabled",
    "delete_runtime_skill": "holdfast.runtime.skills.change_skills:DeleteSkill",
    "propose": "holdfast.runtime.evolution.propose:Propose",
    "list_proposals": "holdfast.runtime.evolution.read_proposals:ListProposals",
    "get_proposal": "holdfast.runtime.evolution.read_proposals:GetProposal",
    "approve_proposal": "holdfast.runtime.evolution.decide:ApproveProposal",
    "reject_proposal": "holdfast.runtime.evolution.decide:RejectProposal",
    "validate_proposal": "holdfast.runtime.evolution.propose:ValidateProposal",
    "proposal_preview": "holdfast.domain.proposals:validate_proposal",
    "compact_proposal_sandbox": "holdfast.domain.proposals:validate_proposal",
    "full_proposal_sandbox": "holdfast.testing.replay.proposal_trial:try_proposal",
    "proposal_submission": "holdfast.runtime.evolution.decide:ApproveProposal",
    "compact_replay_fixture": "holdfast.testing.replay.runner:run_fixture",
    "memory_harness": "holdfast.testing.replay.harness:HARNESS",
    "full_replay_suite": "holdfast.testing.replay.runner:run_fixture",
    "benchmark_gate": "holdfast.testing.replay.benchmark:run_benchmark",
    "recover": "holdfast.runtime.transcripts.recover:Recover",
    "close": "holdfast.runtime.transcripts.recover:Close",
    "agent_skill_directories": "holdfast.skill_folders.mounts:SkillMounts",
    "agent_tool_registries": "holdfast.runtime.tools.registries:UpsertToolRegistry",
    "transport_http": "holdfast.gateway.runtime_routes:router",
    "transport_mcp": "holdfast.mcp.server:create_server",
}


def _offers(section: Section, *names: str, privacy: PrivacyRule | None = None) -> tuple[Offer, ...]:
    return tuple(Offer(name, section, _BUILT.get(name), privacy=privacy) for name in names)


OFFERS: tuple[Offer, ...] = (
    *_offers(Section.MEMORY, "write", "recall"),
    *_offers(Section.MEMORY, "project", privacy="prompt_projection"),
    *_offers(Section.MEMORY, "project_private_planes", privacy="private_plane_projection"),
    Offer("maintain", Section.MEMORY, "holdfast.runtime.transcripts.maintain:Maintain", needs_model=True),
    *_offers(Section.MEMORY, "inspect", "commit_transcript", "finalize_turn_and_maintain"),
    *_offers(Section.MEMORY, "list_runtime_skills", "get_runtime_skill", "edit_runtime_skill"),
    *_offers(Section.MEMORY, "set_runtime_skill_enabled", "delete_runtime_skill"),
    *_offers(Section.MEMORY, "propose", "list_proposals", "get_proposal", "approve_proposal", "reject_proposal"),
    Offer("export", Section.LIFECYCLE, "holdfast.runtime.transcripts.export:ExportContinuity", privacy="export_import"),
    Offer(
        "import", Section.LIFECYCLE, "holdfast.runtime.transcripts.import_:ImportContinuity", privacy="export_import"
    ),
    *_offers(Section.LIFECYCLE, "export_transcript", privacy="export_import"),
    Offer("export_space", Section.LIFECYCLE, "holdfast.runtime.transcripts.space:ExportSpace", privacy="export_import"),
    Offer("import_space", Section.LIFECYCLE, "holdfast.runtime.transcripts.space:ImportSpace", privacy="export_import"),
    *_offers(Section.LIFECYCLE, "request_transcript_lifecycle", "recover", "close"),
    *_offers(Section.VALIDATION, "replay", "replay_transcript", "repair_transcript"),
    *_offers(Section.VALIDATION, "compact_replay_fixture", "memory_harness", "full_replay_suite", "benchmark_gate"),
    *_offers(Section.VALIDATION, "validate_proposal", "proposal_preview", "compact_proposal_sandbox"),
    *_offers(Section.VALIDATION, "full_proposal_sandbox", "proposal_submission"),
    Offer("capabilities", Section.VALIDATION, "holdfast.domain.capabilities:catalogue"),
    Offer("transport_sdk", Section.ADAPTER, "holdfast.sdk.runtime:MemoryRuntime"),
    Offer("transport_cli", Section.ADAPTER, "holdfast.cli.platform:app"),
    *_offers(Section.ADAPTER, "transport_http", "transport_webhook", "transport_wss", "transport_mqtt"),
    *_offers(Section.ADAPTER, "transport_mcp", "transport_a2a"),
    Offer("store_in_memory", Section.ENTRY, "holdfast.stores.sqlite.connection:MEMORY"),
    Offer("store_file", Section.ENTRY, "holdfast.stores.sqlite.store:SqliteStore"),
    Offer("store_sqlite", Section.ENTRY, "holdfast.stores.sqlite.store:SqliteStore"),
    Offer("store_embedded", Section.ENTRY, "holdfast.stores.sqlite.store:SqliteStore"),
    Offer("store_postgres", Section.ENTRY, "holdfast.stores.postgres.store:PostgresStore"),
    *_offers(Section.ENTRY, "agent_skill_directories", "agent_tool_registries"),
    Offer("by_words", Section.INDEXED_RECALL, "holdfast.search.partition_index:Postings"),
    Offer("by_meaning", Section.INDEXED_RECALL, "holdfast.search.partition_index:Vectors"),
    Offer("by_approximate_index", Section.INDEXED_RECALL, "holdfast.search.approximate_search:ApproximateSearch"),
)
NAMES = tuple(offer.name for offer in OFFERS)
# Operations that an adapter can dispatch without a model. `maintain` needs an adapter with one.
DISPATCHED = tuple("write recall project inspect recover replay export import capabilities close".split())


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The configuration of a host. By default: no model, nothing switched off, nothing forbidden."""

    model: bool = False
    switched_off: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    privacy: Privacy = field(default_factory=Privacy)

    def __post_init__(self) -> None:
        checked_flag(self.model, "model")
        for part in ("switched_off", "forbidden"):
            names = getattr(self, part)
            # A string would pass as a collection: `in` would match every part of a name.
            if not isinstance(names, frozenset):
                raise InvalidInput(part, f"expected a frozenset of capabilities, got {type(names).__name__}")
            # A misspelt name would forbid nothing.
            if unknown := names.difference(NAMES):
                raise InvalidInput(part, f"there is no capability {min(map(repr, unknown)):.80}; {_choices()}")


def _choices() -> str:
    return f"use one of {', '.join(NAMES)}"


@dataclass(frozen=True, slots=True)
class Capability(Presentable):
    """One capability and its gates. `visible` and `reason` follow from the gates."""

    name: str
    profile: bool
    built_in: bool
    configured: bool
    permitted: bool
    privacy: bool

    @property
    def reason(self) -> Gate | None:
        """The first gate that refuses, or None."""
        return next((gate for gate in Gate if not getattr(self, gate.value)), None)

    @property
    def visible(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class MemoryCapabilityCatalog(Presentable):
    """All capabilities under one profile, in a fixed order."""

    profile: Profile
    privacy: Privacy
    capabilities: tuple[Capability, ...]

    def __getitem__(self, name: str) -> Capability:
        for capability in self.capabilities:
            if capability.name == name:
                return capability
        raise InvalidInput("capability", f"there is no capability {name!r:.80}; {_choices()}")

    def __getattr__(self, name: str) -> Capability:
        """Return a capability by name, as in `capabilities.write.visible`."""
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except InvalidInput as error:
            problem = str(error)
        raise AttributeError(problem)

    def of(self, section: Section) -> tuple[Capability, ...]:
        names = {offer.name for offer in OFFERS if offer.section is section}
        return tuple(capability for capability in self.capabilities if capability.name in names)


STANDARD = Circumstances()


def catalogue(profile: Profile, circumstances: Circumstances = STANDARD) -> MemoryCapabilityCatalog:
    """Build the catalogue of a profile in these circumstances."""
    capabilities = (
        Capability(
            name=offer.name,
            profile=_in_profile(profile, offer.name),
            built_in=offer.built is not None,
            configured=offer.name not in circumstances.switched_off and (circumstances.model or not offer.needs_model),
            permitted=offer.name not in circumstances.forbidden,
            privacy=offer.privacy is None or getattr(circumstances.privacy, offer.privacy),
        )
        for offer in OFFERS
    )
    return MemoryCapabilityCatalog(profile, circumstances.privacy, tuple(capabilities))


def _in_profile(profile: Profile, name: str) -> bool:
    rejected = {f"store_{backend}" for backend in Backend if backend not in profile.backends}
    return name not in profile.without | rejected


# --- the snapshot -----------------------------------------------------------------------------------------------------


def snapshot(shown: MemoryCapabilityCatalog) -> Mapping[str, object]:
    """Return the catalogue as a document. Equal catalogues give the same bytes as JSON."""
    profile = shown.profile
    details: dict[Section, dict[str, object]] = {
        Section.MEMORY: {
            "privacy": asdict(shown.privacy),
            "budget": _budget_parts(
                profile,
                *("records", "blob_bytes", "source_chars", "render_chars", "maintenance_chars", "recent_messages"),
            ),
        },
        Section.LIFECYCLE: {"budget": _budget_parts(profile, "events", "snapshot_bytes")},
        Section.VALIDATION: {"budget": asdict(profile.budget.transcript)},
        Section.ADAPTER: {
            "dispatched": [name for name in DISPATCHED if shown[name].visible],
            "budget": _budget_parts(profile, "http_body_bytes", "wss_connections"),
        },
        Section.ENTRY: {"kind": profile.kind.value, "backends": [backend.value for backend in profile.backends]},
        Section.INDEXED_RECALL: {"budget": _budget_parts(profile, "cache_entries")},
    }
    sections = {
        section.value: {"capabilities": _describe_section(shown, section), **details[section]} for section in Section
    }
    compiled = {capability.name: capability.built_in for capability in shown.capabilities}
    return {"schema": SCHEMA, "profile": profile.name, "compiled": compiled, **sections}


def _budget_parts(profile: Profile, *names: str) -> dict[str, int]:
    return {name: getattr(profile.budget, name) for name in names}


def _describe_section(
    shown: MemoryCapabilityCatalog, section: Section
) -> Mapping[str, Mapping[str, bool | str | None]]:
    return {
        capability.name: {
            "visible": capability.visible,
            "reason": None if capability.reason is None else capability.reason.value,
            **{gate.value: getattr(capability, gate.value) for gate in Gate},
        }
        for capability in shown.of(section)
    }
