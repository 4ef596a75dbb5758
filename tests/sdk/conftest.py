"""Fixtures that run the runtime's tests on both stores."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from blank import blank
from postgres import ON_POSTGRES

sys.path.insert(0, str(Path(__file__).parent))

STORES = ("sqlite", ON_POSTGRES)


@pytest.fixture(params=STORES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The location of an empty store."""
    if request.param == "sqlite":
        return str(blank(tmp_path / "memory.db"))
    url: str = request.getfixturevalue("migrated_url")
    return url
