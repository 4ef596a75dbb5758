"""Which providers of memory there are: our own, and those that are installed beside us.

Others are found through entry points of the group `holdfast.providers`, each a provider or what makes one. They are
loaded when they are first asked for. One that cannot be used is listed with what is wrong with it, and keeps nobody
else from working. A name of ours cannot be taken.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from holdfast.domain.bindings import Binding, checked_key
from holdfast.domain.contract import Capabilities
from holdfast.domain.references import secrets_in
from holdfast.domain.secret import Secret
from holdfast.errors import HoldfastError, InvalidInput, ProviderMisconfigured, UnknownProvider
from holdfast.ports.provider import Adapter, Provider, Secrets

GROUP = "holdfast.providers"
# By name, so that what speaks HTTP is loaded only where it is bound.
BUILT_IN: Mapping[str, str] = {
    "gateway": "holdfast.providers.gateway:GatewayProvider",
    "local": "holdfast.providers.local:LocalProvider",
}
_NEEDED = ("schema", "check", "open")
_MOST_TOLD_CHARS = 500
log = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class Broken:
    """A provider that is installed and cannot be used. `where` is what its entry point names."""

    name: str
    where: str
    problem: str


class ProviderRegistry:
    """Implements `ports.Providers`."""

    def __init__(self, secrets: Secrets, found: Callable[[], Iterable[EntryPoint]] | None = None) -> None:
        self._secrets = secrets
        self._found = found or (lambda: entry_points(group=GROUP))
        self._lock = threading.Lock()
        self._points: dict[str, EntryPoint] | None = None
        self._loaded: dict[str, Provider] = {}
        self._broken: dict[tuple[str, str], Broken] = {}

    def known(self) -> Sequence[Provider]:
        with self._lock:
            return [provider for name in sorted(self._names()) if (provider := self._load(name)) is not None]

    def broken(self) -> Sequence[Broken]:
        """Those that are installed and cannot be used, in the order of their names."""
        self.known()
        return [self._broken[each] for each in sorted(self._broken)]

    def get(self, name: str) -> Provider:
        if (loaded := self._loaded.get(name)) is not None:
            return loaded
        with self._lock:
            found = self._load(name) if isinstance(name, str) and name in self._names() else None
            if found is not None:
                return found
            names = ", ".join(sorted(self._names()))
        unusable = [each for each in self._broken.values() if each.name == name]
        if unusable:
            raise UnknownProvider("provider", f"{name!r:.80} is installed and cannot be used: {unusable[0].problem}")
        raise UnknownProvider("provider", f"there is no provider {name!r:.80}; there are {names}")

    def check_secrets(self, provider: Provider, config: Mapping[str, Any]) -> None:
        for path, given in secrets_in(provider.schema(), config):
            self._secrets.check(given, f"config.{path}")

    def adapter(self, binding: Binding) -> Adapter:
        """A new one for a binding whose provider reaches outside, with its secrets resolved."""
        provider = self.get(binding.provider)
        if not provider.outside:
            raise ProviderMisconfigured(f"{binding.provider} does not reach outside: it works beneath a call")
        return provider.open(binding.config, self._resolved(provider, binding.config), None)

    def _resolved(self, provider: Provider, config: Mapping[str, Any]) -> dict[str, Secret]:
        """By path. `SecretUnavailable` if what is stored is no reference, however it got there."""
        found = secrets_in(provider.schema(), config)
        return {path: self._secrets.resolve(given, f"config.{path}") for path, given in found}

    # --- what is installed ---

    def _names(self) -> set[str]:
        return {*BUILT_IN, *self._installed()}

    def _installed(self) -> dict[str, EntryPoint]:
        if self._points is None:
            points: dict[str, EntryPoint] = {}
            for point in sorted(self._found(), key=lambda each: (each.name, each.value)):
                if (problem := _problem_of(point, points)) is not None:
                    self._note(point.name, point.value, problem)
                elif point.name not in BUILT_IN:
                    points[point.name] = point
            self._points = points
        return self._points

    def _load(self, name: str) -> Provider | None:
        """The provider of that name, or None if it is unusable, which is noted."""
        if name in self._loaded:
            return self._loaded[name]
        point = self._installed().get(name)
        where = BUILT_IN[name] if point is None else point.value
        if (name, where) in self._broken:
            return None
        try:
            self._loaded[name] = _usable(name, _at(where) if point is None else point.load())
        except HoldfastError as error:
            self._note(name, where, str(error)[:_MOST_TOLD_CHARS])
        except Exception as error:  # noqa: BLE001 (somebody else's code: whatever it raises, it alone is unusable)
            self._note(name, where, f"{type(error).__name__} while it was loaded")
        return self._loaded.get(name)

    def _note(self, name: str, where: str, problem: str) -> None:
        log.warning("the provider %r (%s) cannot be used: %s", name, where, problem)
        self._broken[name, where] = Broken(name, where, problem)


def _problem_of(point: EntryPoint, taken: Mapping[str, EntryPoint]) -> str | None:
    if point.name in BUILT_IN:
        # Ours may be registered as well, and is then what it is anyway.
        return None if point.value == BUILT_IN[point.name] else "takes the name of a provider of Holdfast's own"
    if point.name in taken:
        return None if taken[point.name].value == point.value else "another one has the same name"
    try:
        checked_key(point.name, "name")
    except InvalidInput as error:
        return error.problem
    return None


def _at(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module), name)


def _usable(name: str, found: Any) -> Provider:
    """A provider, from itself or from what makes one."""
    made = found() if isinstance(found, type) or not hasattr(found, "open") else found
    lacking = [method for method in _NEEDED if not callable(getattr(made, method, None))]
    if lacking:
        raise ProviderMisconfigured(f"is no provider: it has no {lacking[0]}")
    if made.key != name:
        raise ProviderMisconfigured(f"calls itself {made.key!r:.80}; its key and its entry point must have one name")
    if not isinstance(made.capabilities, Capabilities) or not isinstance(made.outside, bool):
        raise ProviderMisconfigured("does not say what it can do: capabilities and outside are needed")
    if not isinstance(made.schema(), Mapping):
        raise ProviderMisconfigured("has no schema of its configuration")
    if not made.outside:
        _refuse_foreign(made)
    return cast(Provider, made)


def _refuse_foreign(made: Any) -> None:
    """Only ours runs beneath the gate: there a call could hold up everything, and reaches our own store."""
    if not type(made).__module__.startswith("holdfast."):
        raise ProviderMisconfigured("says that it does not reach outside; only Holdfast's own may run beneath the gate")
