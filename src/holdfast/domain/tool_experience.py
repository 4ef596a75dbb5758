"""Experience with tools: observations of calls, folded into counts per tool, task and schema, and their governance.

No observation is stored. The text of one is shown to models, so only a summary without secrets, payloads, private or
external content becomes part of an experience.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from holdfast.domain.canonical import canonical
from holdfast.domain.tool_registries import AgentToolRegistry, ToolRegistryRef

MAX_OBSERVATIONS = 64
MAX_SUMMARY_CHARS = 500
MAX_NOTE_CHARS = 1_000
MAX_HINTS = 8
# The ids of the last observations of an experience, which do not count again. More than a feedback can hold, so that
# one that is sent twice counts once.
MAX_RECENT = 2 * MAX_OBSERVATIONS
LEAST_SUCCESSES = 2
MANY_SUCCESSES = 3
DIGEST_BYTES = 16
_ID_BYTES = 8


class CallOutcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PARTIAL = "partial"
    CANCELLED = "cancelled"


class ToolDisposition(StrEnum):
    """The decision on what a feedback says about one tool and task."""

    ACCEPTED = "accepted_as_evidence"
    DEFERRED = "deferred_until_repeated"
    LOW_CONFIDENCE = "rejected_by_low_confidence"
    SCHEMA_DRIFT = "rejected_by_schema_drift"
    PRIVACY = "rejected_by_privacy"

    @property
    def is_stored(self) -> bool:
        return self in (ToolDisposition.ACCEPTED, ToolDisposition.DEFERRED)


class Confidence(StrEnum):
    MEDIUM = "medium"
    HIGH = "high"


class ToolDrift(StrEnum):
    """The difference between what an experience rests on and what the host has registered."""

    NO_REGISTRY = "registry_missing"
    REGISTRY = "registry_fingerprint_drift"
    SCOPE = "registry_scope_drift"
    NO_TOOL = "tool_missing"
    SCHEMA = "tool_schema_drift"
    MIXED = "mixed_fingerprints"
    MIXED_REGISTRIES = "mixed_registries"


class ExperienceReason(StrEnum):
    """The reason of a disposition that is no drift."""

    REPEATED = "repeated_success"
    NOTED = "operator_note"
    TOO_FEW = "too_few_successes"
    NO_SUCCESS = "no_success"
    MISMATCH = "reuse_mismatch"
    PRIVATE = "private_content_used"


class ToolJudgement(NamedTuple):
    disposition: ToolDisposition
    reason: ToolDrift | ExperienceReason
    confidence: Confidence | None = None


def judge(*, mismatch: bool, drift: ToolDrift | None, private: bool, successes: int, noted: bool) -> ToolJudgement:
    """Decide about one tool and task. `successes` are those of all feedbacks, with this one."""
    if mismatch:
        return ToolJudgement(ToolDisposition.LOW_CONFIDENCE, ExperienceReason.MISMATCH)
    if drift is not None:
        return ToolJudgement(ToolDisposition.SCHEMA_DRIFT, drift)
    if private:
        return ToolJudgement(ToolDisposition.PRIVACY, ExperienceReason.PRIVATE)
    if successes == 0:
        return ToolJudgement(ToolDisposition.LOW_CONFIDENCE, ExperienceReason.NO_SUCCESS)
    confidence = confidence_of(successes, noted)
    if confidence is None:
        return ToolJudgement(ToolDisposition.DEFERRED, ExperienceReason.TOO_FEW)
    reason = ExperienceReason.NOTED if noted else ExperienceReason.REPEATED
    return ToolJudgement(ToolDisposition.ACCEPTED, reason, confidence)


def confidence_of(successes: int, noted: bool) -> Confidence | None:
    """Return the confidence in an experience; None if it must be repeated first."""
    if successes and (noted or successes >= MANY_SUCCESSES):
        return Confidence.HIGH
    return Confidence.MEDIUM if successes >= LEAST_SUCCESSES else None


def find_drift(
    ref: ToolRegistryRef,
    registry: AgentToolRegistry | None,
    key: ExperienceKey,
    schemas: set[str],
    registries: set[str],
) -> ToolDrift | None:
    """Compare a group of observations with what is registered; `schemas` and `registries` are those that it names."""
    if registries != {ref.registry_id}:
        return ToolDrift.MIXED_REGISTRIES
    if registry is None:
        return ToolDrift.NO_REGISTRY
    if registry.fingerprint != ref.fingerprint:
        return ToolDrift.REGISTRY
    if registry.scope != ref.scope:
        return ToolDrift.SCOPE
    if len(schemas) > 1:
        return ToolDrift.MIXED
    tool = registry.by_id.get(key.tool_id)
    if tool is None:
        return ToolDrift.NO_TOOL
    return None if tool.schema_fingerprint == key.schema_fingerprint else ToolDrift.SCHEMA


# --- observations -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentToolObservation:
    """One call of a tool, summarized by the host. `summary` is not the result, and holds nothing of its arguments.

    An `observation_id` counts once. With `external_content` the counts are taken, the summary is not.
    """

    observation_id: str
    registry_id: str
    tool_id: str
    schema_fingerprint: str
    task_signature: str
    outcome: CallOutcome | str
    summary: str = ""
    call_id: str | None = None
    error_code: str | None = None
    external_content: bool = False
    private_content_used: bool = False
    permission_tags: Sequence[str] = ()
    risk_tags: Sequence[str] = ()
    started_at: datetime | None = None
    completed_at: datetime | None = None


class ExperienceKey(NamedTuple):
    """The subject of an experience: a tool with one schema, and a task."""

    registry_id: str
    tool_id: str
    schema_fingerprint: str
    task_signature: str

    @property
    def digest(self) -> bytes:
        return digest_of(*self)

    @property
    def version_digest(self) -> bytes:
        """The digest of the tool with its schema, whatever the task."""
        return digest_of(*self[:3])


def digest_of(*parts: str, size: int = DIGEST_BYTES) -> bytes:
    return hashlib.blake2b(canonical(list(parts)), digest_size=size).digest()


def id_digest(observation_id: str) -> bytes:
    return digest_of(observation_id, size=_ID_BYTES)


@dataclass(frozen=True, slots=True)
class ToolExperience:
    """The folded observations of a tool and a task.

    `place` is the digest of the only conversation they came from, None if of several or none; `summary_place` that of
    the conversation of the summary. `recent` are the digests of the last observation ids.
    """

    key: ExperienceKey
    updated_at: datetime
    succeeded: int = 0
    failed: int = 0
    partial: int = 0
    cancelled: int = 0
    noted: bool = False
    summary: str = ""
    place: bytes | None = None
    summary_place: bytes | None = None
    recent: bytes = field(default=b"", repr=False)

    @property
    def confidence(self) -> Confidence | None:
        return confidence_of(self.succeeded, self.noted)

    @property
    def calls(self) -> int:
        return self.succeeded + self.failed + self.partial + self.cancelled

    def unseen(self, observations: Sequence[AgentToolObservation]) -> list[AgentToolObservation]:
        """Return the observations that do not count yet, each id once."""
        first = {id_digest(each.observation_id): each for each in reversed(observations)}
        order = dict.fromkeys(id_digest(each.observation_id) for each in observations)
        known = {self.recent[at : at + _ID_BYTES] for at in range(0, len(self.recent), _ID_BYTES)}
        return [first[digest] for digest in order if digest not in known]

    def with_observations(
        self, new: Sequence[AgentToolObservation], at: datetime, *, noted: bool, fallback: str, place: bytes | None
    ) -> ToolExperience:
        """Fold observations in. `fallback` is the summary of a call that has none."""
        counts = {outcome.value: getattr(self, outcome) for outcome in CallOutcome}
        for each in new:
            counts[each.outcome] += 1
        recent = b"".join((self.recent, *(id_digest(each.observation_id) for each in new)))[-MAX_RECENT * _ID_BYTES :]
        folded = replace(
            self,
            **counts,
            updated_at=max(at, self.updated_at),
            noted=self.noted or noted,
            recent=recent,
            place=place if place == self.place or not self.calls else None,
        )
        summary = _summary_of(new, fallback)
        # A new summary at 1, 2, 4, 8 successes: replaced texts take room in a store, so a million calls write twenty.
        is_due = not self.summary or folded.succeeded.bit_length() > self.succeeded.bit_length()
        return replace(folded, summary=summary, summary_place=place) if summary and is_due else folded


def _summary_of(new: Sequence[AgentToolObservation], fallback: str) -> str:
    """Return the summary of the last success without external content."""
    sound = [each for each in new if each.outcome == CallOutcome.SUCCEEDED and not each.external_content]
    if not sound:
        return ""
    named = next((each.summary for each in reversed(sound) if each.summary.strip()), "")
    # The host's summary is of all calls, so it may be of external content too.
    return " ".join((named or ("" if any(each.external_content for each in new) else fallback)).split())
