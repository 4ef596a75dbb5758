"""Profiles are ceilings: their numbers, the values derived from them, and that nothing raises them."""

from __future__ import annotations

import re
from dataclasses import astuple, fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.profiles import (
    PROFILES,
    Backend,
    Budget,
    Pressure,
    Profile,
    SystemKind,
    checked_backend,
    pressure_of,
    profile_of,
    render_budget,
    scale_budget,
)
from holdfast.errors import InvalidInput

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "profiles.md"
# Written out a second time, to catch a typo in the table. Sizes are in bytes.
# records events blob snapshot body source render maintenance cache wss | page refs redactions derived repair recent
NUMBERS = {
    "esp-standalone-memory": "4096 2048 4194304 1048576 16384 2048 4096 2048 16 8 | 8 2 16 8 4 8",
    "esp-embedded-sdk": "512 256 1048576 262144 8192 1024 2048 1024 8 4 | 4 1 8 4 4 4",
    "linux-device-standalone-memory": "12000 4096 16777216 4194304 65536 4096 8192 4096 32 16 | 16 8 32 23 8 16",
    "desktop-macos-standalone-memory": "20000 8192 33554432 8388608 98304 8192 12288 8192 64 32 | 32 12 64 39 16 32",
    "desktop-macos-embedded-sdk": "4096 2048 8388608 2097152 32768 2048 4096 2048 16 8 | 8 4 16 8 4 8",
    "desktop-windows-embedded-sdk": "4096 2048 8388608 2097152 32768 2048 4096 2048 16 8 | 8 4 16 8 4 8",
    "server-linux-memory-gateway": "40000 16384 67108864 16777216 131072 8192 16384 8192 128 64 | 32 16 64 78 32 32",
    "server-linux-dev-full": "80000 32768 134217728 33554432 262144 16384 32768 16384 256 128 | 64 32 128 156 64 64",
}
LARGE = st.integers(1, 1_000_000)
ANY_PROFILE = st.sampled_from(list(PROFILES.values()))


@pytest.mark.parametrize("name", NUMBERS)
def test_a_profile_has_these_numbers(name: str) -> None:
    budget = profile_of(name).budget
    numbers = [*map(str, astuple(budget)), "|", *map(str, astuple(budget.transcript)), str(budget.recent_messages)]
    assert " ".join(numbers) == NUMBERS[name]


def test_there_are_these_profiles_and_no_others() -> None:
    assert list(PROFILES) == list(NUMBERS)
    assert all(name == profile.name for name, profile in PROFILES.items())


def test_a_profile_that_is_an_sdk_is_a_part_of_its_host() -> None:
    embedded = {name for name, profile in PROFILES.items() if profile.kind is SystemKind.SDK_EMBEDDED}
    assert embedded == {name for name in NUMBERS if name.endswith("-sdk")}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_profile_is_found_with_and_without_its_prefix(name: str) -> None:
    assert profile_of(name) is profile_of(f"profile-{name}") is PROFILES[name]


@pytest.mark.parametrize("name", ["", "profile-", "dev-full", "SERVER-LINUX-DEV-FULL", "profile-profile-x", None, 7])
def test_an_unknown_profile_is_refused_with_the_names_of_all(name: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        profile_of(name)
    assert refused.value.field == "profile"
    assert all(known in str(refused.value) for known in NUMBERS)


def test_a_profile_takes_its_prefix_once() -> None:
    with pytest.raises(InvalidInput):
        profile_of("profile-profile-server-linux-dev-full")


@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize("name", NUMBERS)
def test_only_esp_profiles_refuse_backends_and_these_are_file_and_sqlite(name: str, backend: Backend) -> None:
    profile = profile_of(name)
    if not name.startswith("esp-") or backend in (Backend.IN_MEMORY, Backend.EMBEDDED):
        assert checked_backend(profile, backend) is backend
        return
    with pytest.raises(InvalidInput, match=f"{name} does not support {backend}; choose in_memory or embedded"):
        checked_backend(profile, backend)


# --- budgets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [field.name for field in fields(Budget)])
@pytest.mark.parametrize("value", [0, -1, True, 1.5, None])
def test_a_budget_of_nothing_cannot_be_made(name: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        replace(profile_of("server-linux-dev-full").budget, **{name: value})  # type: ignore[arg-type]
    assert refused.value.field == f"budget.{name}"


@given(st.builds(Budget, **{field.name: LARGE for field in fields(Budget)}))
def test_what_follows_from_a_budget_is_never_nothing(budget: Budget) -> None:
    page, refs, redactions, derived, repair = astuple(budget.transcript)
    assert page >= 4
    assert refs >= 1
    assert redactions >= 8
    assert derived >= 4
    assert repair >= 4
    assert budget.recent_messages >= 4


@given(ANY_PROFILE, st.none() | LARGE, st.none() | LARGE)
def test_what_may_be_rendered_is_the_least_of_the_three(
    profile: Profile, requested: int | None, provider_max: int | None
) -> None:
    rendered = render_budget(profile, requested, provider_max)
    ceilings = [profile.budget.render_chars, requested, provider_max]
    assert rendered in ceilings
    assert all(ceiling is None or rendered <= ceiling for ceiling in ceilings)


@pytest.mark.parametrize("value", [0, -1, -4096, True, 1.0, "4096"])
@pytest.mark.parametrize("name", ["requested", "provider_max"])
def test_a_request_for_nothing_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        render_budget(profile_of("esp-embedded-sdk"), **{name: value})  # type: ignore[arg-type]
    assert refused.value.field == name


# --- pressure -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pressure", "left"), [(Pressure.NORMAL, 4096), (Pressure.CAUTIOUS, 2457), (Pressure.CRITICAL, 1433)]
)
def test_pressure_leaves_all_six_tenths_or_a_third(pressure: Pressure, left: int) -> None:
    assert scale_budget(4096, pressure) == left


@given(LARGE)
def test_more_pressure_never_leaves_more_and_never_nothing(chars: int) -> None:
    normal, cautious, critical = (scale_budget(chars, pressure) for pressure in Pressure)
    assert chars == normal >= cautious >= critical >= 1


@pytest.mark.parametrize("chars", [0, -1, True, 2.0])
def test_nothing_cannot_be_scaled(chars: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        scale_budget(chars, Pressure.NORMAL)  # type: ignore[arg-type]
    assert refused.value.field == "chars"


def test_pressure_is_known_by_its_name() -> None:
    assert [pressure_of(name) for name in ("normal", "cautious", "critical")] == list(Pressure)
    for unknown in ("high", "", None, 35):
        with pytest.raises(InvalidInput, match="normal, cautious, critical"):
            scale_budget(100, unknown)  # type: ignore[arg-type]


# --- the reference --------------------------------------------------------------------------------------------------


def table_under(heading: str) -> dict[str, list[str]]:
    """Return the rows under a heading of the reference, by profile."""
    text = REFERENCE.read_text("utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", text, re.MULTILINE)
    return {name: cells.split(" | ") for name, cells in rows}


def test_the_reference_says_of_each_profile_what_it_is_and_goes_without() -> None:
    for name, (kind, backends, without) in table_under("Profiles").items():
        profile = PROFILES[name]
        assert (kind, backends) == (profile.kind, ", ".join(profile.backends))
        assert without == (", ".join(f"`{one}`" for one in sorted(profile.without)) or "nothing")
    assert list(table_under("Profiles")) == list(PROFILES)


def size(count: int) -> str:
    return f"{count // 2**20} MiB" if count >= 2**20 else f"{count // 2**10} KiB"


def test_the_reference_has_the_same_budgets() -> None:
    def told(name: str, value: int) -> str:
        return size(value) if name.endswith("_bytes") else f"{value:,}"

    expected = {
        name: [told(field.name, getattr(profile.budget, field.name)) for field in fields(Budget)]
        for name, profile in PROFILES.items()
    }
    assert table_under("Budgets") == expected


def test_the_reference_has_the_same_ceilings_of_transcripts() -> None:
    expected = {
        name: [f"{number:,}" for number in (*astuple(profile.budget.transcript), profile.budget.recent_messages)]
        for name, profile in PROFILES.items()
    }
    assert table_under("What follows from a budget") == expected
