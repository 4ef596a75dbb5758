"""A capability is visible if all five gates are open; otherwise the first closed gate is the reason."""

from __future__ import annotations

import importlib
import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.domain import capabilities
from holdfast.domain.capabilities import (
    DISPATCHED,
    NAMES,
    OFFERS,
    Capability,
    Circumstances,
    Gate,
    Offer,
    Privacy,
    Section,
    catalogue,
    snapshot,
)
from holdfast.domain.profiles import PROFILES, profile_of
from holdfast.errors import InvalidInput

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "profiles.md"
FULL = profile_of("server-linux-dev-full")
ESP = [name for name in PROFILES if name.startswith("esp-")]
# The operations of a runtime, as in its contract.
OPERATIONS = """write recall project maintain inspect replay export import recover close capabilities commit_transcript
    finalize_turn_and_maintain replay_transcript request_transcript_lifecycle repair_transcript export_transcript
    export_space list_runtime_skills get_runtime_skill edit_runtime_skill set_runtime_skill_enabled
    delete_runtime_skill propose validate_proposal list_proposals get_proposal approve_proposal reject_proposal
    proposal_preview compact_proposal_sandbox full_proposal_sandbox proposal_submission agent_skill_directories
    agent_tool_registries""".split()


@pytest.fixture
def all_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark everything as built, so that the other gates decide."""
    monkeypatch.setattr(capabilities, "OFFERS", tuple(replace(offer, built="holdfast:open") for offer in OFFERS))


@pytest.mark.parametrize("gates", list(itertools.product([True, False], repeat=5)))
def test_a_capability_is_visible_if_every_gate_lets_it_through(gates: tuple[bool, ...]) -> None:
    capability = Capability("write", *gates)
    assert capability.visible == all(gates)
    closed = [gate for gate, is_open in zip(Gate, gates, strict=True) if not is_open]
    assert capability.reason == (closed[0] if closed else None)


def test_the_gates_are_asked_in_this_order() -> None:
    assert list(Gate) == ["profile", "built_in", "configured", "permitted", "privacy"]


def test_every_operation_store_and_transport_is_in_the_catalogue_once() -> None:
    stores = [f"store_{name}" for name in "in_memory file sqlite embedded".split()]
    transports = [f"transport_{name}" for name in "sdk cli http webhook wss mqtt mcp a2a".split()]
    assert len(set(NAMES)) == len(NAMES)
    assert {*OPERATIONS, *stores, *transports} <= set(NAMES)
    assert set(DISPATCHED) <= set(NAMES)
    assert {offer.section for offer in OFFERS} == set(Section)


def test_what_a_profile_goes_without_is_in_the_catalogue() -> None:
    assert {name for profile in PROFILES.values() for name in profile.without} <= set(NAMES)


@pytest.mark.parametrize("offer", [offer for offer in OFFERS if offer.built], ids=lambda offer: offer.name)
def test_what_says_that_it_is_built_is_there(offer: Offer) -> None:
    assert offer.built is not None
    module, name = offer.built.split(":")
    assert hasattr(importlib.import_module(module), name)


def test_what_is_not_built_is_never_visible() -> None:
    for profile in PROFILES.values():
        shown = catalogue(profile, Circumstances(model=True, privacy=Privacy(private_plane_projection=True)))
        for offer in OFFERS:
            assert shown[offer.name].built_in == (offer.built is not None)
            assert not (shown[offer.name].visible and offer.built is None)


# --- each gate ------------------------------------------------------------------------------------------------------


def hidden(name: str, circumstances: Circumstances) -> dict[str, Gate | None]:
    shown = catalogue(profile_of(name), circumstances).capabilities
    return {capability.name: capability.reason for capability in shown if not capability.visible}


@pytest.mark.usefixtures("all_built")
@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_hides_what_it_goes_without_and_nothing_else(name: str) -> None:
    expected = set() if name == FULL.name else {"full_replay_suite", "benchmark_gate", "full_proposal_sandbox"}
    if name.startswith("esp-"):
        expected |= {"store_file", "store_sqlite", "store_postgres", "agent_skill_directories", "agent_tool_registries"}
        expected |= {"memory_harness", "compact_proposal_sandbox", "proposal_submission"}
    elif name == "server-linux-memory-gateway":
        expected |= {"replay"}
    found = hidden(name, Circumstances(model=True, privacy=Privacy(private_plane_projection=True)))
    assert found == dict.fromkeys(expected, Gate.PROFILE)


@pytest.mark.usefixtures("all_built")
def test_standard_privacy_lets_prompts_and_exchange_through_and_private_planes_not() -> None:
    assert hidden(FULL.name, Circumstances(model=True)) == {"project_private_planes": Gate.PRIVACY}


@pytest.mark.usefixtures("all_built")
def test_strict_privacy_lets_nothing_out() -> None:
    found = hidden(FULL.name, Circumstances(model=True, privacy=Privacy(False, False, False)))
    kept = {
        "project",
        "project_private_planes",
        "export",
        "import",
        "export_transcript",
        "export_space",
        "import_space",
    }
    assert found == dict.fromkeys(kept, Gate.PRIVACY)


@pytest.mark.usefixtures("all_built")
def test_maintenance_needs_a_model() -> None:
    assert catalogue(FULL)["maintain"].reason is Gate.CONFIGURED
    assert catalogue(FULL, Circumstances(model=True))["maintain"].visible


@pytest.mark.usefixtures("all_built")
@pytest.mark.parametrize("name", NAMES)
def test_what_is_switched_off_or_forbidden_is_hidden_alone(name: str) -> None:
    allowing = Circumstances(model=True, privacy=Privacy(private_plane_projection=True))
    assert hidden(FULL.name, allowing) == {}
    assert hidden(FULL.name, replace(allowing, switched_off=frozenset({name}))) == {name: Gate.CONFIGURED}
    assert hidden(FULL.name, replace(allowing, forbidden=frozenset({name}))) == {name: Gate.PERMITTED}


@pytest.mark.usefixtures("all_built")
@pytest.mark.parametrize("name", ESP)
def test_nothing_that_a_host_sets_opens_what_a_profile_rejects(name: str) -> None:
    generous = Circumstances(model=True, privacy=Privacy(True, True, True))
    assert catalogue(profile_of(name), generous)["store_sqlite"].reason is Gate.PROFILE


@pytest.mark.parametrize("part", ["switched_off", "forbidden"])
@pytest.mark.parametrize("given", [frozenset({"wirte"}), "write", ["write"], frozenset({7})])
def test_a_name_that_would_forbid_nothing_is_refused(part: str, given: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        Circumstances(**{part: given})  # type: ignore[arg-type]
    assert refused.value.field == part


@pytest.mark.parametrize("name", ["prompt_projection", "private_plane_projection", "export_import"])
@pytest.mark.parametrize("value", ["no", 0, 1, None])
def test_a_privacy_policy_is_yes_or_no_and_nothing_that_passes_for_it(name: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        Privacy(**{name: value})  # type: ignore[arg-type]
    assert refused.value.field == f"privacy.{name}"


def test_a_model_is_there_or_not() -> None:
    with pytest.raises(InvalidInput, match="model"):
        Circumstances(model="none")  # type: ignore[arg-type]


def test_an_unknown_capability_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(InvalidInput) as refused:
        catalogue(FULL)["wirte"]
    assert all(name in str(refused.value) for name in NAMES)


# --- the snapshot ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROFILES)
def test_a_snapshot_holds_every_capability_once_with_its_gates(name: str) -> None:
    shown = catalogue(profile_of(name))
    document = json.loads(json.dumps(snapshot(shown)))
    assert document["schema"] == "holdfast.platform.capability.v1"
    assert list(document)[2:] == "compiled memory lifecycle validation adapter entry indexed_recall".split()
    told = [pair for section in Section for pair in document[section]["capabilities"].items()]
    assert sorted(key for key, _ in told) == sorted(NAMES)
    for key, gates in told:
        capability = shown[key]
        assert (gates["visible"], gates["reason"]) == (capability.visible, capability.reason)
        assert gates["visible"] == all(gates[gate] for gate in Gate)
        assert document["compiled"][key] == gates["built_in"]


@pytest.mark.usefixtures("all_built")
def test_a_snapshot_dispatches_what_is_visible() -> None:
    gateway = json.loads(json.dumps(snapshot(catalogue(profile_of("server-linux-memory-gateway")))))
    assert gateway["adapter"]["dispatched"] == [name for name in DISPATCHED if name != "replay"]
    full = json.loads(json.dumps(snapshot(catalogue(FULL))))
    assert full["adapter"]["dispatched"] == list(DISPATCHED)


def test_the_reference_has_every_capability_and_gate() -> None:
    text = REFERENCE.read_text("utf-8")
    assert not [name for name in (*NAMES, *Gate, *Section) if f"`{name}`" not in text]
