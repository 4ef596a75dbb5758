"""How to install an extra of the package: a command for error messages that works where this copy came from."""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation: from the clone it came from, else from an index."""
    return f"{_installer()} {_requirement(extra)}"


def _installer() -> str:
    """The installer of this environment. A `pip` on the path may be another environment's; some have only uv."""
    found, python = shutil.which("pip"), shlex.quote(sys.executable)
    if found is not None and Path(found).parent == Path(sys.executable).parent:
        return "pip install"
    if importlib.util.find_spec("pip") is None and shutil.which("uv") is not None:
        return f"uv pip install --python {python}"
    return f"{python} -m pip install"


def _requirement(extra: str) -> str:
    origin = _origin()
    url = str(origin.get("url", ""))
    if "dir_info" in origin:
        folder = url2pathname(urlsplit(url).path)
        if not Path(folder, "pyproject.toml").is_file():
            return f"'.[{extra}]'  # in a clone of holdfast"
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f"{editable}{shlex.quote(f'{folder}[{extra}]')}"
    if (version := origin.get("vcs_info")) is not None:
        return shlex.quote(f"holdfast[{extra}] @ {version['vcs']}+{url}@{version['commit_id']}")
    return shlex.quote(f"holdfast[{extra}] @ {url}" if url else f"holdfast[{extra}]")


def _origin() -> dict[str, Any]:
    """Read where this package was installed from, as installers record it (direct_url.json); empty for an index."""
    try:
        recorded = distribution("holdfast").read_text("direct_url.json")
    except PackageNotFoundError:
        recorded = None
    found = json.loads(recorded) if recorded else {}
    return found if isinstance(found, dict) else {}
