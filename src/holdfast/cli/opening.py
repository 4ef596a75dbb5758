"""From options to an open memory. Only what writes something new may create a store."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

import holdfast
from holdfast.cli.options import StoreOptions
from holdfast.errors import ConfigurationError, StoreUnusable
from holdfast.settings import Settings

MEMORY = ":memory:"


def settings() -> Settings:
    """The settings; what is wrong with one is told by its name, never by its value."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = "HOLDFAST_" + "_".join(str(part) for part in first["loc"]).upper()
        raise ConfigurationError(f"{name}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None


def location(chosen: StoreOptions) -> str:
    return chosen.store or settings().store


def opened(chosen: StoreOptions, *, create: bool = False, work: bool = False) -> holdfast.Memory:
    """The memory, to be used in `with`. `work` also does the store's background work meanwhile."""
    path = location(chosen)
    if path == MEMORY:
        raise StoreUnusable(":memory: is gone when the command ends; give the path of a file with --store")
    if not create and "://" not in path and not Path(path).exists():
        raise StoreUnusable(
            f"there is no store at {path}; name another with --store, or create it with `holdfast store init`"
        )
    return holdfast.open(path, embedder=chosen.embedder, settings=settings(), work=work)
