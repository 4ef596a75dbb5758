"""Fixtures for the tests of the agent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import small_model


@pytest.fixture(scope="session")
def small_model_url() -> Iterator[str]:
    """A real small model behind an OpenAI-compatible server; started once."""
    with small_model.small_model() as url:
        yield url
