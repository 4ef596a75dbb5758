"""The registry of memory providers: the built-in ones, and those installed beside Holdfast.

Installed providers are entry points of the group `holdfast.providers`: a provider, or a factory for one. They are
loaded on first use. A broken one is listed with its problem and does not affect the others. Built-in names cannot be
taken.
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
from holdfast.domain.secret import Secret
from holdfast.domain.secret_references import secrets_in
from holdfast.errors import HoldfastError, InvalidInput, ProviderMisconfigured, UnknownProvider
from holdfast.ports.provider import Adapter, Provider, Secrets

GROUP = "holdfast.providers"
# By name, so that the HTTP client is imported only if it is bound.
BUILT_IN: Mapping[str, str] = {
    "gateway": "holdfast.providers.gateway:GatewayProvider",
    "local": "holdfast.providers.local:LocalProvider",
}
_NEEDED = ("schema", "check", "open")
_MOST_TOLD_CHARS = 500
log = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class BrokenProvider:
    """An installed provider that cannot be used. `where` is its entry point's object reference."""

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
        self._broken: dict[tuple[str, str], BrokenProvider] = {}

    def list_providers(self) -> Sequence[Provider]:
        with self._lock:
            return [provider for name in sorted(self._names()) if (provider := self._load(name)) is not None]

    def broken_providers(self) -> Sequence[BrokenProvider]:
        """List the installed providers that cannot be used, by name."""
        self.list_providers()
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
            raise UnknownProvider("provider", f"{name!r:.80} is installed but cannot be used: {unusable[0].problem}")
        raise UnknownProvider("provider", f"there is no provider {name!r:.80}; use one of {names}")

    def check_secrets(self, provider: Provider, config: Mapping[str, Any]) -> None:
        for path, reference in secrets_in(provider.schema(), config):
            self._secrets.check(reference, f"config.{path}")

    def adapter(self, binding: Binding) -> Adapter:
        """Open a new adapter for a binding to an external provider, with its secrets resolved."""
        provider = self.get(binding.provider)
        if not provider.outside:
            raise ProviderMisconfigured(f"{binding.provider} is not an external provider: it runs inside a call")
        return provider.open(binding.config, self._resolve_secrets(provider, binding.config), None)

    def _resolve_secrets(self, provider: Provider, config: Mapping[str, Any]) -> dict[str, Secret]:
        """Resolve secrets by path; `SecretUnavailable` if a stored value is not a reference."""
        found = secrets_in(provider.schema(), config)
        return {path: self._secrets.resolve(reference, f"config.{path}") for path, reference in found}

    # --- installed providers ---

    def _names(self) -> set[str]:
        return {*BUILT_IN, *self._load_entry_points()}

    def _load_entry_points(self) -> dict[str, EntryPoint]:
        if self._points is None:
            points: dict[str, EntryPoint] = {}
            for point in sorted(self._found(), key=lambda each: (each.name, each.value)):
                if (problem := _entry_point_problem(point, points)) is not None:
                    self._record_broken(point.name, point.value, problem)
                elif point.name not in BUILT_IN:
                    points[point.name] = point
            self._points = points
        return self._points

    def _load(self, name: str) -> Provider | None:
        """Load a provider; if it is unusable, note the problem and return None."""
        if name in self._loaded:
            return self._loaded[name]
        point = self._load_entry_points().get(name)
        where = BUILT_IN[name] if point is None else point.value
        if (name, where) in self._broken:
            return None
        try:
            self._loaded[name] = _validate_provider(name, _import_object(where) if point is None else point.load())
        except HoldfastError as error:
            self._record_broken(name, where, str(error)[:_MOST_TOLD_CHARS])
        except Exception as error:  # noqa: BLE001 (third-party code: its failure must not affect other providers)
            self._record_broken(name, where, f"{type(error).__name__} while it was loaded")
        return self._loaded.get(name)

    def _record_broken(self, name: str, where: str, problem: str) -> None:
        log.warning("the provider %r (%s) cannot be used: %s", name, where, problem)
        self._broken[name, where] = BrokenProvider(name, where, problem)


def _entry_point_problem(point: EntryPoint, taken: Mapping[str, EntryPoint]) -> str | None:
    if point.name in BUILT_IN:
        # A built-in provider may also be registered as an entry point.
        return None if point.value == BUILT_IN[point.name] else "uses the name of a built-in provider"
    if point.name in taken:
        return None if taken[point.name].value == point.value else "another provider has the same name"
    try:
        checked_key(point.name, "name")
    except InvalidInput as error:
        return error.problem
    return None


def _import_object(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module), name)


def _validate_provider(name: str, found: Any) -> Provider:
    """Validate an entry point's provider, or what its factory returns."""
    provider = found() if isinstance(found, type) or not hasattr(found, "open") else found
    lacking = [method for method in _NEEDED if not callable(getattr(provider, method, None))]
    if lacking:
        raise ProviderMisconfigured(f"is not a provider: it has no {lacking[0]}")
    if provider.key != name:
        raise ProviderMisconfigured(f"has the key {provider.key!r:.80}; its key must be the name of its entry point")
    if not isinstance(provider.capabilities, Capabilities) or not isinstance(provider.outside, bool):
        raise ProviderMisconfigured("does not declare `capabilities` and `outside`; both are required")
    if not isinstance(provider.schema(), Mapping):
        raise ProviderMisconfigured("has no configuration schema")
    if not provider.outside:
        _refuse_foreign(provider)
    return cast(Provider, provider)


def _refuse_foreign(provider: Any) -> None:
    """Refuse third-party providers inside the gate: there they could block every call and reach our own store."""
    if not type(provider).__module__.startswith("holdfast."):
        raise ProviderMisconfigured("declares `outside = False`; only Holdfast's own providers may run inside a call")
