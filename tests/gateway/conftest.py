"""Gateways for tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from served import TOKEN, Gateway, Visitor, serving

from blank import blank


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One gateway per module, with an operator's token; each test uses its own users."""
    place: Path = tmp_path_factory.mktemp("gateway") / "memory.db"
    with serving(place, token=TOKEN) as found:
        yield found


@pytest.fixture
def visitor(gateway: Gateway, request: pytest.FixtureRequest) -> Visitor:
    """A user of this test only."""
    return gateway.user(f"user of {request.node.name}"[:200])


@pytest.fixture
def open_gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway where anybody may sign up."""
    with serving(blank(tmp_path / "memory.db"), open_sign_up=True) as found:
        yield found
