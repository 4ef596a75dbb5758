"""The sources of the data: public packages, by name and version.

Every kind is made twice, from different packages: half `a` for development, half `b` for checking afterwards.
"""

import re
from dataclasses import dataclass
from enum import Enum


class Registry(Enum):
    """The registry and the format of a package."""

    SDIST = "sdist"
    WHEEL = "wheel"
    NPM = "npm"
    DEBIAN = "debian"


@dataclass(frozen=True, slots=True)
class Source:
    registry: Registry
    name: str
    version: str
    # A pattern of the paths to read, without the package's top folder.
    files: str

    @property
    def label(self) -> str:
        return re.sub(r"\W+", "-", self.name).strip("-")


@dataclass(frozen=True, slots=True)
class Half:
    manuals: tuple[Source, ...]
    python: tuple[Source, ...]
    code: tuple[Source, ...]


def _manual(name: str, version: str, folder: str, suffix: str = "rst") -> Source:
    return Source(Registry.SDIST, name, version, rf"{folder}/.*\.{suffix}")


def _python(name: str, version: str) -> Source:
    return Source(Registry.WHEEL, name, version, r".*\.py")


def _rust(name: str, version: str) -> Source:
    return Source(Registry.DEBIAN, f"librust-{name}-dev", version, r".*/src/.*\.rs")


def _go(name: str, version: str) -> Source:
    return Source(Registry.DEBIAN, f"golang-github-{name}-dev", version, r".*\.go")


HALVES = {
    "a": Half(
        manuals=(
            _manual("django", "5.1.4", "docs", "txt"),
            _manual("celery", "5.7.0", "docs"),
            _manual("pytest", "9.2.0", "doc/en"),
            _manual("twisted", "26.10.0", "docs"),
            _manual("mercurial", "7.2.4", "mercurial/helptext", "txt"),
            _manual("coverage", "7.17.2", "doc"),
            _manual("black", "26.10.1", "docs", "md"),
        ),
        python=(
            _python("networkx", "3.6.1"),
            _python("sqlalchemy", "2.1.8"),
            _python("dask", "2026.8.0"),
            _python("xarray", "2026.9.0"),
            _python("boltons", "26.2.0"),
            _python("werkzeug", "3.1.9"),
        ),
        code=(
            _rust("tokio", "1.24.2-1"),
            _rust("regex", "1.7.1-1"),
            _go("hashicorp-memberlist", "0.2.2-2"),
            _go("go-git-go-git", "5.4.2-3"),
            Source(Registry.NPM, "rxjs", "7.8.2", r"src/internal/.*\.ts"),
            Source(Registry.NPM, "leveldown", "6.1.1", r"deps/leveldb/leveldb-[^/]*/.*\.(cc|h)"),
            Source(Registry.NPM, "react-native", "0.72.17", r"ReactAndroid/.*\.java"),
        ),
    ),
    "b": Half(
        manuals=(
            _manual("sphinx", "9.0.4", "doc"),
            _manual("buildbot", "4.3.0", "docs"),
            _manual("pyramid", "2.1", "docs"),
            _manual("scrapy", "2.19.0", "docs"),
            _manual("pip", "26.3", "docs/html", "(rst|md)"),
            _manual("cython", "3.3.1", "docs"),
            Source(Registry.NPM, "fastify", "4.28.1", r"docs/.*\.md"),
        ),
        python=(
            _python("nltk", "3.10.4"),
            _python("ansible-core", "2.19.14"),
            _python("keras", "3.15.1"),
            _python("textual", "8.2.8"),
            _python("bokeh", "3.9.2"),
            _python("trio", "0.35.0"),
        ),
        code=(
            _rust("clap", "4.0.32-1"),
            _rust("image", "0.24.3-1"),
            _go("docker-distribution", "2.8.2+ds1-1"),
            _go("prometheus-client-golang", "1.14.0-3"),
            Source(Registry.NPM, "ol", "10.10.0", r"[^.]*\.js"),
            Source(Registry.NPM, "rocksdb", "5.2.1", r"deps/rocksdb/rocksdb/(db|include|table|util)/.*\.(cc|h)"),
            Source(Registry.NPM, "@capacitor/android", "8.5.2", r".*\.java"),
        ),
    ),
}
