"""Requirements of tests on the machine: if one is missing, the test is skipped with a reason; in CI it fails."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}: in CI that must be there")
    pytest.skip(what)
