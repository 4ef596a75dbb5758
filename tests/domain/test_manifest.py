"""The manifest records the purpose of a store; the store does not open for any other."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.domain.manifest import SCHEMA_ID, Manifest, manifest_for, merge_manifest
from holdfast.domain.profiles import PROFILES, Backend, SystemKind, profile_of
from holdfast.errors import ManifestMismatch

NOW = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
SERVER = profile_of("server-linux-dev-full")
MADE = manifest_for(SERVER, Backend.SQLITE, 7, NOW)


def test_it_is_read_as_it_was_written() -> None:
    assert Manifest.from_json(MADE.to_json()) == MADE
    assert MADE.schema_id == SCHEMA_ID == "holdfast_store_schema_v1"


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_opens_what_it_made(name: str) -> None:
    made = manifest_for(profile_of(name), "sqlite", 7, NOW)
    assert merge_manifest(made, made) == made


def test_opening_again_keeps_when_it_was_made_and_moves_the_rest() -> None:
    again = merge_manifest(MADE, manifest_for(SERVER, Backend.SQLITE, 8, NOW + timedelta(days=1)))
    assert again == replace(MADE, version=8, last_opened_at=NOW + timedelta(days=1))


def test_a_clock_that_went_back_does_not_take_the_last_opening_back() -> None:
    assert merge_manifest(MADE, manifest_for(SERVER, "sqlite", 7, NOW - timedelta(days=1))).last_opened_at == NOW


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("schema_id", "another_schema"),
        ("backend", "postgresql"),
        ("profile", "esp-embedded-sdk"),
        ("memory_system_kind", SystemKind.SDK_EMBEDDED),
    ],
)
def test_a_store_made_for_something_else_is_not_opened(part: str, value: str) -> None:
    with pytest.raises(ManifestMismatch, match=part):
        merge_manifest(replace(MADE, **{part: value}), MADE)


def test_a_store_of_a_newer_version_is_not_opened() -> None:
    with pytest.raises(ManifestMismatch, match="version"):
        merge_manifest(replace(MADE, version=8), MADE)


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "[]",
        "{",
        "null",
        json.dumps({"version": 7}),
        MADE.to_json().replace("standalone", "loose"),
        MADE.to_json().replace("2026", "x026"),
    ],
)
def test_a_manifest_that_cannot_be_read_says_so(damaged: str) -> None:
    with pytest.raises(ManifestMismatch, match="cannot be read"):
        Manifest.from_json(damaged)
