"""Providers are found by their entry points; a broken one is reported and does not stop the others."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest

from holdfast.domain.bindings import Binding
from holdfast.domain.contract import Capabilities
from holdfast.domain.ids import BindingId
from holdfast.domain.secret import Secret
from holdfast.domain.secret_references import secrets_in
from holdfast.errors import (
    InvalidConfiguration,
    ProviderMisconfigured,
    SecretUnavailable,
    UnknownProvider,
)
from holdfast.ports.provider import Adapter, NestedCall
from holdfast.providers import ConfiguredProvider, OutsideConfiguration, SecretReference
from holdfast.providers.registry import GROUP, ProviderRegistry
from holdfast.providers.secrets import SecretResolver

CANARY = "canary-91ad"


class KeyedConfiguration(OutsideConfiguration):
    url: str
    key: SecretReference
    second: SecretReference | None = None


class Keyed(ConfiguredProvider[KeyedConfiguration]):
    """Returns the arguments it was opened with, for the test to inspect."""

    key: ClassVar[str] = "keyed"
    description: ClassVar[str] = "for tests"
    configuration = KeyedConfiguration

    def opened(self, config: KeyedConfiguration, secrets: Mapping[str, Secret], beneath: NestedCall | None) -> Adapter:
        return {"config": config, "secrets": secrets, "beneath": beneath}  # type: ignore[return-value]


class Beneathling(Keyed):
    key: ClassVar[str] = "beneathling"
    outside: ClassVar[bool] = False


class Misnamed(Keyed):
    key: ClassVar[str] = "other"


class NoProvider:
    key = "none"


def unmade() -> Any:
    raise RuntimeError(CANARY)


def point(name: str, what: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{what}", GROUP)


def registry(*points: EntryPoint, **variables: str) -> ProviderRegistry:
    return ProviderRegistry(SecretResolver(variables.get, "HOLDFAST_SECRET_", None), lambda: points)


def bound(provider: str, **config: Any) -> Binding:
    return Binding(BindingId("bnd_1"), "acme", "mine", provider, config)


def test_ours_are_there_without_being_installed() -> None:
    assert [provider.key for provider in registry().list_providers()] == ["gateway", "local"]
    assert not registry().get("local").outside
    assert registry().get("gateway").outside


def test_what_is_installed_is_known_beside_ours() -> None:
    found = registry(point("keyed", "Keyed"))
    assert [provider.key for provider in found.list_providers()] == ["gateway", "keyed", "local"]
    assert found.get("keyed") is found.get("keyed")
    assert not found.broken_providers()


def test_one_that_is_really_installed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found through the files of a distribution, as pip writes them."""
    info = tmp_path / "jar_memory-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: jar-memory\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nkeyed = {__name__}:Keyed\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = ProviderRegistry(SecretResolver({}.get, "X", None))
    assert "keyed" in [provider.key for provider in found.list_providers()]


@pytest.mark.parametrize(
    ("name", "what", "problem"),
    [
        ("gone", "Nothing", "AttributeError"),
        ("raising", "unmade", "RuntimeError"),
        ("none", "NoProvider", "has no schema"),
        ("misnamed", "Misnamed", "has the key 'other'"),
        ("beneathling", "Beneathling", "inside a call"),
        ("Bad Name", "Keyed", "lowercase"),
        ("local", "Keyed", "built-in provider"),
        ("gateway", "Keyed", "built-in provider"),
    ],
)
def test_one_that_is_broken_is_told_and_harms_nobody(name: str, what: str, problem: str) -> None:
    found = registry(point(name, what), point("keyed", "Keyed"))
    assert [provider.key for provider in found.list_providers()] == ["gateway", "keyed", "local"]
    (broken,) = found.broken_providers()
    assert (broken.name, broken.where) == (name, f"{__name__}:{what}")
    assert problem in broken.problem
    assert CANARY not in broken.problem
    if name not in ("local", "gateway"):
        with pytest.raises(UnknownProvider):
            found.get(name)


def test_a_module_that_cannot_even_be_imported_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_module_of_the_test.py").write_text(f"raise SystemError('{CANARY}')")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = registry(EntryPoint("bad", "broken_module_of_the_test:X", GROUP))
    assert [each.problem for each in found.broken_providers()] == ["SystemError while it was loaded"]


def test_two_of_one_name_leave_the_first() -> None:
    found = registry(point("keyed", "Keyed"), point("keyed", "Misnamed"))
    assert found.get("keyed").key == "keyed"
    assert [each.problem for each in found.broken_providers()] == ["another provider has the same name"]


def test_a_name_that_nobody_has_is_told_with_those_that_there_are() -> None:
    with pytest.raises(UnknownProvider, match="gateway, local") as told:
        registry().get("mem0")
    assert told.value.field == "provider"


def test_nothing_is_loaded_before_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazy_module_of_the_test.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = registry(EntryPoint("lazy", "lazy_module_of_the_test:X", GROUP))
    found.get("local")
    assert "lazy_module_of_the_test" not in sys.modules


# --- configurations and secrets ---


def test_an_adapter_is_opened_with_the_secrets_that_it_refers_to() -> None:
    found = registry(point("keyed", "Keyed"), HOLDFAST_SECRET_K=CANARY)
    opened: Any = found.adapter(bound("keyed", url="x", key="env://HOLDFAST_SECRET_K"))
    assert opened["secrets"]["key"].revealed() == CANARY
    assert list(opened["secrets"]) == ["key"]
    assert opened["config"].timeout_seconds == 10.0
    assert CANARY not in repr(opened)


def test_a_secret_that_is_not_there_keeps_the_adapter_closed() -> None:
    with pytest.raises(SecretUnavailable, match=r"config\.key"):
        registry(point("keyed", "Keyed")).adapter(bound("keyed", url="x", key="env://HOLDFAST_SECRET_K"))


@pytest.mark.parametrize("given", [CANARY, [CANARY], {"key": CANARY}, 7, ""])
def test_what_is_stored_and_is_no_reference_keeps_the_adapter_closed(given: Any) -> None:
    with pytest.raises(SecretUnavailable, match=r"config\.key") as told:
        registry(point("keyed", "Keyed")).adapter(bound("keyed", url="x", key=given))
    assert CANARY not in str(told.value)


def test_one_that_works_beneath_a_call_is_not_opened_outside() -> None:
    with pytest.raises(ProviderMisconfigured):
        registry().adapter(bound("local"))
    with pytest.raises(ProviderMisconfigured):
        registry().get("local").open({}, {}, None)


def test_a_schema_marks_its_secrets_also_where_they_may_be_left_out() -> None:
    config = {"url": "a", "key": "b", "second": "c", "timeout_seconds": 3.0}
    assert list(secrets_in(Keyed().schema(), config)) == [("key", "b"), ("second", "c")]


def test_a_checked_configuration_has_its_defaults() -> None:
    checked = Keyed().check({"url": "x", "key": "env://HOLDFAST_SECRET_K", "timeout_seconds": 3})
    assert checked == {"url": "x", "key": "env://HOLDFAST_SECRET_K", "second": None, "timeout_seconds": 3.0}
    assert Keyed().check(checked) == checked


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"key": "env://K"}, "config.url"),
        ({"url": 3, "key": "env://K"}, "config.url"),
        ({"url": "x", "key": CANARY}, "config.key"),
        ({"url": "x", "key": "env://K", "second": CANARY}, "config.second"),
        ({"url": "x", "key": "env://K", "colour": CANARY}, "config['colour']"),
        ({"url": "x", "key": "env://K", "timeout_seconds": 61}, "config.timeout_seconds"),
        ({"url": "x", "key": "env://K", "timeout_seconds": 0.01}, "config.timeout_seconds"),
        ({"url": "x", "key": "env://K", "timeout_seconds": "10"}, "config.timeout_seconds"),
        ([CANARY], "config"),
    ],
)
def test_a_configuration_that_is_wrong_is_told_by_its_field_and_never_by_its_value(config: Any, field: str) -> None:
    with pytest.raises(InvalidConfiguration) as told:
        Keyed().check(config)
    assert told.value.field == field
    assert CANARY not in str(told.value)
    assert told.value.__cause__ is None
    assert told.value.__context__ is None


def test_capabilities_are_said() -> None:
    assert registry().get("local").capabilities == Capabilities(
        profile=True,
        correction=True,
        provider_managed_extraction=True,
        async_extraction=True,
        extraction_jobs=True,
        extraction_retry=True,
        explanation=True,
    )
