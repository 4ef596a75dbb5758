"""The how-to's provider passes the suite, run as a third party would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "docs/how-to/write-a-provider.md"


def test_the_provider_of_the_how_to_passes_the_whole_suite(tmp_path: Path) -> None:
    snippets = re.findall(r"^```python\n(.*?)^```", _PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "test_jar.py").write_text("\n\n".join(snippets))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "test_jar.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert int(re.findall(r"(\d+) passed", ran.stdout)[0]) > 120
    assert "skipped" not in ran.stdout
