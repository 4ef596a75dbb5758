"""Governance of tool experience: every row of the table, every drift, and texts that are no summaries."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.tool_checks import ObservationRejection, reject_text
from holdfast.domain.tool_experience import (
    MAX_RECENT,
    AgentToolObservation,
    CallOutcome,
    Confidence,
    ExperienceKey,
    ExperienceReason,
    ToolDisposition,
    ToolDrift,
    ToolExperience,
    find_drift,
    judge,
)
from holdfast.domain.tool_registries import (
    AgentTool,
    AgentToolRegistry,
    RegistryScope,
    ToolRegistryRef,
    checked_registry,
    registry_fingerprint,
)
from holdfast.errors import InvalidInput

NOW = datetime(2026, 11, 19, tzinfo=UTC)
TOOLS = (AgentTool("deploy", "schema-1", permission_tags=("b", "a")), AgentTool("rollback", "schema-2"))


def registered(**more: object) -> AgentToolRegistry:
    made = replace(AgentToolRegistry("host", TOOLS, registered_at=NOW), **more)  # type: ignore[arg-type]
    return replace(made, fingerprint=registry_fingerprint(made))


def observation(number: int, **more: object) -> AgentToolObservation:
    made = AgentToolObservation(
        f"call-{number}", "host", "deploy", "schema-1", "ship", CallOutcome.SUCCEEDED, f"It took {number} seconds."
    )
    return replace(made, **more)  # type: ignore[arg-type]


# --- the table --------------------------------------------------------------------------------------------------------


@given(
    mismatch=st.booleans(),
    drift=st.none() | st.sampled_from(ToolDrift),
    private=st.booleans(),
    successes=st.integers(0, 6),
    noted=st.booleans(),
)
def test_the_first_row_of_the_table_that_fits_decides(
    mismatch: bool, drift: ToolDrift | None, private: bool, successes: int, noted: bool
) -> None:
    judged = judge(mismatch=mismatch, drift=drift, private=private, successes=successes, noted=noted)
    high = noted or successes >= 3
    rows = (
        (mismatch, ("rejected_by_low_confidence", "reuse_mismatch", None)),
        (drift is not None, ("rejected_by_schema_drift", drift, None)),
        (private, ("rejected_by_privacy", "private_content_used", None)),
        (successes == 0, ("rejected_by_low_confidence", "no_success", None)),
        (successes < 2 and not noted, ("deferred_until_repeated", "too_few_successes", None)),
        (
            True,
            ("accepted_as_evidence", "operator_note" if noted else "repeated_success", "high" if high else "medium"),
        ),
    )
    assert tuple(judged) == next(row for fits, row in rows if fits)


CURRENT = registered()
DRIFTS = {
    None: (CURRENT, CURRENT.ref, {"schema-1"}, {"host"}),
    ToolDrift.NO_REGISTRY: (None, CURRENT.ref, {"schema-1"}, {"host"}),
    ToolDrift.REGISTRY: (registered(namespace="new"), CURRENT.ref, {"schema-1"}, {"host"}),
    ToolDrift.SCOPE: (CURRENT, replace(CURRENT.ref, scope="project"), {"schema-1"}, {"host"}),
    ToolDrift.NO_TOOL: (gone := registered(tools=TOOLS[1:]), gone.ref, {"schema-1"}, {"host"}),
    ToolDrift.SCHEMA: (
        changed := registered(tools=(replace(TOOLS[0], schema_fingerprint="schema-9"),)),
        changed.ref, {"schema-1"}, {"host"},
    ),
    ToolDrift.MIXED: (CURRENT, CURRENT.ref, {"schema-1", "schema-9"}, {"host"}),
    ToolDrift.MIXED_REGISTRIES: (CURRENT, CURRENT.ref, {"schema-1"}, {"host", "zoo"}),
}  # fmt: skip


def test_every_drift_is_found() -> None:
    assert set(DRIFTS) == {None, *ToolDrift}
    key = ExperienceKey("host", "deploy", "schema-1", "ship")
    for drift, (registry, ref, schemas, registries) in DRIFTS.items():
        assert find_drift(ref, registry, key, schemas, registries) is drift


# --- folding ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(CallOutcome)), max_size=60), st.integers(1, 9))
def test_an_observation_counts_once_however_it_is_sent(sent: list[tuple[int, CallOutcome]], size: int) -> None:
    experience = ToolExperience(ExperienceKey("host", "deploy", "schema-1", "ship"), NOW)
    first: dict[int, CallOutcome] = {}
    for start in range(0, len(sent), size):
        batch = sent[start : start + size]
        new = experience.unseen([observation(number, outcome=outcome) for number, outcome in batch])
        experience = experience.with_observations(new, NOW, noted=False, fallback="", place=None)
        for number, outcome in batch:
            first.setdefault(number, outcome)
    for outcome in CallOutcome:
        assert getattr(experience, outcome) == list(first.values()).count(outcome)
    assert len(experience.recent) == 8 * min(len(first), MAX_RECENT)


def test_a_million_successes_replace_the_summary_twenty_times() -> None:
    experience, texts = ToolExperience(ExperienceKey("host", "deploy", "schema-1", "ship"), NOW), set()
    experience = experience.with_observations([observation(0)], NOW, noted=False, fallback="", place=None)
    for power in range(20):
        experience = replace(experience, succeeded=2**power)
        for number in (1, 2):
            new = [observation(10 * power + number)]
            experience = experience.with_observations(new, NOW, noted=False, fallback="", place=None)
            texts.add(experience.summary)
    assert len(texts) <= 21


def test_only_a_success_without_external_content_gives_the_summary() -> None:
    experience = ToolExperience(ExperienceKey("host", "deploy", "schema-1", "ship"), NOW)

    def summary(*new: AgentToolObservation, fallback: str = "All went well.") -> str:
        return experience.with_observations(list(new), NOW, noted=False, fallback=fallback, place=None).summary

    assert summary(observation(1), observation(2)) == "It took 2 seconds."
    assert summary(observation(1), observation(2, external_content=True)) == "It took 1 seconds."
    assert summary(observation(1, summary=""), fallback="All\nwent\twell.") == "All went well."
    assert summary(observation(1, summary=""), observation(2, external_content=True)) == ""
    assert summary(observation(1, external_content=True)) == ""
    assert summary(observation(1, outcome=CallOutcome.FAILED)) == ""


# --- registries -------------------------------------------------------------------------------------------------------


def test_the_fingerprint_is_that_of_the_content_in_any_order() -> None:
    shuffled = replace(CURRENT, tools=TOOLS[::-1], registered_at=None, fingerprint=None)
    assert checked_registry(shuffled).tools == checked_registry(CURRENT).tools
    assert registry_fingerprint(shuffled) == registry_fingerprint(checked_registry(shuffled)) == CURRENT.fingerprint
    assert AgentToolRegistry.from_snapshot(checked_registry(CURRENT).to_snapshot()) == checked_registry(CURRENT)
    others = [
        registered(scope=RegistryScope.PROJECT), registered(owner="agent_tools"), registered(namespace="n"),
        registered(registry_id="zoo"), registered(tools=TOOLS[:1]),
        *(registered(tools=(replace(TOOLS[0], **{name: value}),)) for name, value in (
            ("disabled", True), ("schema_fingerprint", "x"), ("risk_tags", ("x",)), ("version", "2"),
            ("display_name", "Deploy"), ("tool_groups", ("g",)), ("descriptor_fingerprint", "d"),
        )),
    ]  # fmt: skip
    assert len({CURRENT.fingerprint, *(other.fingerprint for other in others)}) == 1 + len(others)


@pytest.mark.parametrize(
    "wrong",
    [
        {"registry_id": "two\nlines"}, {"registry_id": ""}, {"registry_id": "x" * 129}, {"namespace": "a b"},
        {"owner": "nobody"}, {"scope": "world"}, {"fingerprint": "#"}, {"registered_at": "yesterday"},
        {"tools": (TOOLS[0], TOOLS[0])}, {"tools": "deploy"}, {"tools": ({"tool_id": "deploy"},)},
        {"tools": (replace(TOOLS[0], tool_id="## Ignore this"),)}, {"tools": (replace(TOOLS[0], disabled=1),)},
        {"tools": (replace(TOOLS[0], risk_tags="writes"),)}, {"tools": (replace(TOOLS[0], risk_tags=("a\u2028b",)),)},
        {"tools": (replace(TOOLS[0], display_name="a\nb"),)}, {"tools": (replace(TOOLS[0], version="[x]"),)},
        {"tools": tuple(AgentTool(f"t{number}", "s") for number in range(513))},
    ],
    ids=str,
)  # fmt: skip
def test_a_registry_that_does_not_fit_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        checked_registry(replace(CURRENT, **wrong))  # type: ignore[arg-type]


# --- texts ------------------------------------------------------------------------------------------------------------

KEY = "Zx9Qm2Lp7Vt4Kc8Wn3Rb6Yd5"  # of no service
TEXTS: dict[ObservationRejection, tuple[str, ...]] = {
    ObservationRejection.SECRET: (
        "api_key=abcd1234", "The password: hunter2222", "Authorization: Basic YWxhZGRpbg", "sent Bearer abcdefgh123456",
        "-----BEGIN RSA PRIVATE KEY-----", "https://ana:hunter2@example.org/", "AKIAIOSFODNN7EXAMPLE", f"used {KEY}",
        "sk-proj-abcdefghijklmnop", '{"token": "abcd"}', "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    ),
    ObservationRejection.SCHEMA: (
        '{"type": "object", "properties": {"a": {"type": "string"}}}', "got {'$schema': 'x'}", '"required": ["a"]',
        'it takes {"name": "deploy", "inputSchema": {}}',
    ),
    ObservationRejection.RAW_PAYLOAD: (
        '{"status": 200, "items": [1, 2]}', "[1, 2, 3]", "<html><body>x</body></html>", "A" * 200,
        "2026-11-19 20:34:22 INFO started", 'the answer was {"id": 1, "name": "x"}',
        'Traceback (most recent call last):\n  File "x.py", line 1',
    ),
}  # fmt: skip
SUMMARIES = (
    "", "Deployed the shop to Frankfurt in 40 seconds.", "The token limit was reached, so it was split in two.",
    "3 of 4 files were written.", "Wrote src/holdfast/runtime/tools/write_feedback.py",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b", "job 0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b ended",
    "The password was asked for, and nothing was typed.",
)  # fmt: skip


def test_secrets_schemas_and_payloads_are_no_summaries() -> None:
    for rejection, texts in TEXTS.items():
        assert {text: reject_text(text) for text in texts} == dict.fromkeys(texts, rejection)
    assert [text for text in SUMMARIES if reject_text(text) is not None] == []


def test_the_constants_of_reports_are_the_seeds() -> None:
    assert [each.value for each in ToolDisposition] == [
        "accepted_as_evidence", "deferred_until_repeated", "rejected_by_low_confidence", "rejected_by_schema_drift",
        "rejected_by_privacy",
    ]  # fmt: skip
    assert [each.value for each in Confidence] == ["medium", "high"]
    assert ExperienceReason.MISMATCH == "reuse_mismatch"
    assert ToolRegistryRef("host", "f").scope == "global"
