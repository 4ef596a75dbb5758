"""EverOS clients for tests."""

from __future__ import annotations

import pytest
from everos_client import PREFIXES, EverosClient
from served import Visitor


@pytest.fixture
def client(visitor: Visitor) -> EverosClient:
    return EverosClient(visitor)


@pytest.fixture(params=PREFIXES)
def either(visitor: Visitor, request: pytest.FixtureRequest) -> EverosClient:
    """A client of each prefix."""
    return EverosClient(visitor, request.param)
