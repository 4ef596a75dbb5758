"""The edge around a test app (`edged.py`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from edged import Running, running


@pytest.fixture
def plain() -> Iterator[Running]:
    with running() as started:
        yield started
