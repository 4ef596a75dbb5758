"""Every setting that a page or a sample names exists."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.settings import GatewayClientSettings, Settings

ROOT = Path(__file__).parents[2]
FILES = [
    *ROOT.glob("*.md"),
    *(path for folder in ("docs", "deploy", "examples") for path in (ROOT / folder).rglob("*") if path.is_file()),
]
_NAME = re.compile(r"\b(?:HOLDFAST|MEMORY_GATEWAY)_[A-Z][A-Z_]*[A-Z]\b")
# `env://` references of bindings name variables of the operator's own.
_OWN_SECRET = "HOLDFAST_SECRET_"


def test_every_setting_that_is_named_exists() -> None:
    known = {f"HOLDFAST_{name.upper()}" for name in Settings.model_fields}
    known |= {f"MEMORY_GATEWAY_{name.upper()}" for name in GatewayClientSettings.model_fields}
    # The sizes of long tests, which measurements name.
    known |= set(_NAME.findall((ROOT / "Makefile").read_text("utf-8")))
    found: dict[str, set[str]] = {}
    for path in FILES:
        if path.suffix not in (".png", ".svg"):
            names = set(_NAME.findall(path.read_text("utf-8"))) - known
            if unknown := {name for name in names if not name.startswith(_OWN_SECRET)}:
                found[str(path.relative_to(ROOT))] = unknown
    assert found == {}
