"""Size of an install without extras: the installed packages with the bytecode that pip compiles."""

from __future__ import annotations

from importlib.metadata import Distribution, distribution
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement

import holdfast

ASKED = 230_000_000
# Size of an empty `python -m venv`: pip and setuptools, and their bytecode.
EMPTY = 24_000_000
EXTRAS = {
    "fastapi",
    "uvicorn",
    "uvloop",
    "lxml",
    "pypdf",
    "python-docx",
    "onnxruntime",
    "psycopg",
    "usearch",
    "mcp",
}


def needed(name: str, known: dict[str, Distribution]) -> dict[str, Distribution]:
    """The package and its dependencies without extras."""
    found = distribution(name)
    known[found.name.lower().replace("_", "-")] = found
    for given in map(Requirement, found.requires or ()):
        here = given.marker is None or given.marker.evaluate({"extra": ""})
        if here and given.name.lower().replace("_", "-") not in known:
            needed(given.name, known)
    return known


def weight(package: Distribution) -> int:
    paths = {Path(str(file.locate())) for file in package.files or ()}
    sources = {path for path in paths if path.suffix == ".py"}
    # Missing bytecode is about as large as its source.
    compiled = {path: Path(cache_from_source(str(path))) for path in sources}
    unmade = sum(path.stat().st_size for path, made in compiled.items() if path.exists() and not made.exists())
    return unmade + sum(path.stat().st_size for path in paths | set(compiled.values()) if path.is_file())


def test_an_install_without_extras_is_as_small_as_is_promised() -> None:
    packages = needed("holdfast", {})
    assert "wordllama" in packages, "what the default embedder reads is counted"
    assert not EXTRAS & set(packages)
    own = sum(path.stat().st_size for path in Path(holdfast.__file__).parent.rglob("*") if path.suffix != ".pyc")
    # Our own files, and as much again for bytecode: pip lists no files of an editable install.
    weights = {name: weight(package) for name, package in packages.items()} | {"holdfast": 2 * own}
    assert sum(weights.values()) + EMPTY < ASKED, sorted(weights.items(), key=lambda item: -item[1])[:8]
