"""The replay gate after an upgrade: what an earlier schema can hold of the fixtures gives the same fingerprints."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import holdfast
from blank import blank
from holdfast.app import open_engine
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.capabilities import catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.sdk import AsyncMemoryRuntime
from holdfast.search.embedders.static import StaticEmbedder
from holdfast.settings import Settings
from holdfast.testing.replay import ReplayFixture, run_fixture
from holdfast.testing.replay.fingerprints import fingerprint_events, fingerprint_state
from holdfast.testing.replay.runner import space_of
from postgres import AnyServer

sys.path.insert(0, str(Path(__file__).parent))

from earlier_schemas import downgrade_postgres, downgrade_sqlite, earlier_versions

FIXTURES = [
    fixture
    for file in sorted((Path(__file__).parent / "fixtures").glob("*.json"))
    if (fixture := ReplayFixture.read(file)).profile == DEFAULT_PROFILE
]
# Played again after the upgrade, in new spaces.
AGAIN = {"lifecycle-of-turns", "maintain-contradiction", "skill-revisions", "maintain-update"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, static_embedder: StaticEmbedder) -> Path:
    """A file of the newest schema in which every fixture was played."""
    path = blank(tmp_path_factory.mktemp("filled") / "memory.db")
    for fixture in FIXTURES:
        assert run_fixture(fixture, str(path), embedder=static_embedder).passed
    return path


@pytest.fixture(scope="module")
def copied(filled: Path, postgres: AnyServer) -> Iterator[str]:
    """A copy of it on PostgreSQL."""
    url = postgres.store_url()
    holdfast.copy(filled, url)
    yield url
    postgres.drop(url)


@pytest.fixture(scope="module")
def expected(filled: Path, static_embedder: StaticEmbedder) -> dict[str, tuple[str, str]]:
    """The fingerprints in the file. After its fixture, a runtime was closed, and background jobs may have run."""
    return asyncio.run(fingerprints(str(filled), FIXTURES, static_embedder))


def check_upgrade(
    location: str, lost: set[str], expected: dict[str, tuple[str, str]], embedder: StaticEmbedder
) -> None:
    held = [fixture for fixture in FIXTURES if space_of(fixture) not in lost]
    assert len(held) >= 30
    found = asyncio.run(fingerprints(location, held, embedder))
    assert found == {each.fixture_id: expected[each.fixture_id] for each in held}
    for fixture in FIXTURES:
        if fixture.fixture_id in AGAIN:
            again = replace(fixture, fixture_id=f"again-{fixture.fixture_id}")
            assert run_fixture(again, location, embedder=embedder).failures == ()


@pytest.mark.parametrize("version", earlier_versions())
def test_a_fixture_gives_the_same_after_an_upgrade(
    version: int, filled: Path, expected: dict[str, tuple[str, str]], tmp_path: Path, static_embedder: StaticEmbedder
) -> None:
    path = tmp_path / "memory.db"
    lost = downgrade_sqlite(filled, path, version)
    check_upgrade(str(path), lost, expected, static_embedder)


@pytest.mark.postgres
@pytest.mark.parametrize("version", earlier_versions())
def test_a_fixture_gives_the_same_after_an_upgrade_of_postgresql(
    version: int, copied: str, expected: dict[str, tuple[str, str]], static_embedder: StaticEmbedder
) -> None:
    location, lost = downgrade_postgres(copied, version)
    check_upgrade(location, lost, expected, static_embedder)


async def fingerprints(
    location: str, fixtures: list[ReplayFixture], embedder: StaticEmbedder
) -> dict[str, tuple[str, str]]:
    """Return the fingerprints of the fixtures' spaces. Opening the store upgrades it."""
    engine = await open_engine(location, Settings.model_construct(), embedder=embedder, work=False)
    profile = profile_of(DEFAULT_PROFILE)
    found = {}
    try:
        for fixture in fixtures:
            space = space_of(fixture)
            governance = Governance(MemoryIdentity(space), profile, catalogue(profile))
            state = await fingerprint_state(AsyncMemoryRuntime(engine, LOCAL_OPERATOR, governance))
            found[fixture.fixture_id] = (state, await fingerprint_events(engine, space))
    finally:
        await engine.close()
    return found
