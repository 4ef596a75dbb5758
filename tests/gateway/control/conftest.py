"""Companies for tests."""

from __future__ import annotations

import re

import pytest
from company import Company
from served import Gateway


@pytest.fixture
def acme(gateway: Gateway, request: pytest.FixtureRequest) -> Company:
    """A company of this test only."""
    return Company(gateway, re.sub(r"\W+", "-", request.node.name)[-100:])
