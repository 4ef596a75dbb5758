"""What a test needs from the machine: missing, it is skipped with a reason, and in CI it fails."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}: in CI that must be there")
    pytest.skip(what)
