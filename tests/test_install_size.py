"""What an install without extras weighs: its packages as they lie here, with the bytecode that pip makes of them."""

from __future__ import annotations

from importlib.metadata import Distribution, distribution
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement

import holdfast

ASKED = 250_000_000
# What `python -m venv` makes before anything is installed: pip and setuptools, and their bytecode.
EMPTY = 24_000_000
EXTRAS = {
    "fastapi",
    "uvicorn",
    "uvloop",
    "lxml",
    "pypdf",
    "python-docx",
    "selectolax",
    "onnxruntime",
    "psycopg",
    "usearch",
}


def needed(name: str, known: dict[str, Distribution]) -> dict[str, Distribution]:
    """The package and all that it needs when none of its extras is asked for."""
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
    # Bytecode that was not made yet is about as large as its source.
    compiled = {path: Path(cache_from_source(str(path))) for path in sources}
    unmade = sum(path.stat().st_size for path, made in compiled.items() if path.exists() and not made.exists())
    return unmade + sum(path.stat().st_size for path in paths | set(compiled.values()) if path.is_file())


def test_an_install_without_extras_is_as_small_as_is_promised() -> None:
    packages = needed("holdfast", {})
    assert "wordllama" in packages, "what the default embedder reads is counted"
    assert not EXTRAS & set(packages)
    own = sum(path.stat().st_size for path in Path(holdfast.__file__).parent.rglob("*") if path.suffix != ".pyc")
    # Ourselves as we lie here, and as much again for bytecode: of an editable install, pip knows no files.
    weights = {name: weight(package) for name, package in packages.items()} | {"holdfast": 2 * own}
    assert sum(weights.values()) + EMPTY < ASKED, sorted(weights.items(), key=lambda item: -item[1])[:8]
