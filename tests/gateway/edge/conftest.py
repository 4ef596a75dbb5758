"""The edge around an app that does as it is told (`edged.py`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from edged import Running, running


@pytest.fixture
def plain() -> Iterator[Running]:
    with running() as started:
        yield started
