"""Secrets are stored as references, even if their provider accepts plain ones. On both stores."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from desk import ACME, WHOLE, Desk, rows_of
from keeping import KeepingProvider
from misbehaving import HostileProvider

from holdfast.control.bindings import CreateBinding, GetBinding, ListBindings, UpdateBinding
from holdfast.control.memory import Query
from holdfast.domain.access import LOCAL_OPERATOR, Action, authorize
from holdfast.domain.bindings import Binding
from holdfast.domain.ids import BindingId
from holdfast.domain.operations import Outcome
from holdfast.domain.scope import Scope
from holdfast.domain.secret import Secret
from holdfast.errors import BindingNotFound, InvalidConfiguration, ProviderMisconfigured, SecretUnavailable
from holdfast.ports.provider import NestedCall
from holdfast.providers.registry import GROUP, ProviderRegistry
from holdfast.providers.secrets import SecretResolver
from holdfast.testing.full_repr import full_repr

CANARY = "sk-live-123"
HELD = "what-the-reference-refers-to"
SERVER = {"type": "object", "properties": {"key": {"type": "string", "secret": True}}}


class LenientProvider(KeepingProvider):
    """Marks secrets in its schema and accepts any configuration. `makes` produces the result of `check`."""

    key = "lenient"
    makes: Callable[[Mapping[str, Any]], Any] = staticmethod(dict)
    opened: Mapping[str, Secret] | None = None

    def schema(self) -> Mapping[str, Any]:
        return {"type": "object", "properties": {"colour": {"type": "string", "secret": True}, "server": SERVER}}

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        made: Mapping[str, Any] = self.makes(config)
        return made

    def open(
        self, config: Mapping[str, Any], secrets: Mapping[str, Secret], beneath: NestedCall | None
    ) -> KeepingProvider:
        self.opened = secrets
        return self


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> LenientProvider:
    """A provider that is found by its entry point, like any other."""
    provider = LenientProvider()
    monkeypatch.setattr(f"{__name__}.INSTALLED", provider, raising=False)
    return provider


@pytest.fixture
def lenient_desk(location: str, lenient: LenientProvider, runner: asyncio.Runner) -> Iterator[Desk]:
    variables = {"HOLDFAST_SECRET_K": HELD}
    points = [EntryPoint("lenient", f"{__name__}:INSTALLED", GROUP)]
    providers = ProviderRegistry(SecretResolver(variables.get, "HOLDFAST_SECRET_", None), lambda: points)
    opened = runner.run(Desk.opened(location, HostileProvider(), providers=providers))
    yield opened
    runner.run(opened.close())


PLAIN: list[tuple[dict[str, Any], str]] = [
    ({"colour": CANARY}, "config.colour"),
    ({"colour": [CANARY]}, "config.colour"),
    ({"colour": "env://HOLDFAST_SECRET_K", "server": {"key": CANARY}}, "config.server.key"),
]


def check_nothing_holds_it(desk: Desk, runner: asyncio.Runner, caplog: pytest.LogCaptureFixture) -> None:
    assert CANARY not in caplog.text
    assert CANARY not in full_repr(runner.run(desk.rows()))
    assert CANARY not in full_repr(runner.run(desk.activity()))
    assert CANARY not in full_repr(runner.run(desk.do(ListBindings(WHOLE))))


@pytest.mark.parametrize(("config", "field"), PLAIN)
def test_a_plain_secret_is_refused_when_a_binding_is_made(
    lenient_desk: Desk,
    runner: asyncio.Runner,
    caplog: pytest.LogCaptureFixture,
    config: dict[str, Any],
    field: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    with rows_of(lenient_desk, runner.run) as rows, pytest.raises(InvalidConfiguration) as told:
        runner.run(lenient_desk.do(CreateBinding(WHOLE, "mine", "lenient", config)))
    assert told.value.field == field
    assert CANARY not in f"{told.value}{told.value!r}"
    assert told.value.__cause__ is told.value.__context__ is None
    assert [(row.outcome, row.error_code) for row in rows] == [(Outcome.REFUSED, InvalidConfiguration.code)]
    with pytest.raises(BindingNotFound):
        runner.run(lenient_desk.do(GetBinding(WHOLE, "mine")))
    check_nothing_holds_it(lenient_desk, runner, caplog)


@pytest.mark.parametrize(("config", "field"), PLAIN)
def test_a_plain_secret_is_refused_when_a_binding_is_changed(
    lenient_desk: Desk,
    runner: asyncio.Runner,
    caplog: pytest.LogCaptureFixture,
    config: dict[str, Any],
    field: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    made = runner.run(lenient_desk.do(CreateBinding(WHOLE, "mine", "lenient", {"colour": "env://HOLDFAST_SECRET_K"})))
    with rows_of(lenient_desk, runner.run) as rows, pytest.raises(InvalidConfiguration) as told:
        runner.run(lenient_desk.do(UpdateBinding(WHOLE, "mine", config=config)))
    assert told.value.field == field
    assert CANARY not in f"{told.value}{told.value!r}"
    assert [(row.outcome, row.error_code) for row in rows] == [(Outcome.REFUSED, InvalidConfiguration.code)]
    assert runner.run(lenient_desk.do(GetBinding(WHOLE, "mine"))) == made
    check_nothing_holds_it(lenient_desk, runner, caplog)


def test_what_a_provider_makes_of_a_configuration_is_looked_at_too(
    lenient_desk: Desk, lenient: LenientProvider, runner: asyncio.Runner, caplog: pytest.LogCaptureFixture
) -> None:
    made = runner.run(lenient_desk.do(CreateBinding(WHOLE, "mine", "lenient", {"size": "large"})))
    lenient.makes = lambda config: {**config, "colour": CANARY}
    for verb in (CreateBinding(WHOLE, "other", "lenient", {}), UpdateBinding(WHOLE, "mine", config={"size": "small"})):
        with pytest.raises(InvalidConfiguration) as told:
            runner.run(lenient_desk.do(verb))
        assert told.value.field == "config.colour"
    assert runner.run(lenient_desk.do(GetBinding(WHOLE, "mine"))) == made
    check_nothing_holds_it(lenient_desk, runner, caplog)


def test_a_provider_that_makes_no_configuration_is_said_to_be_at_fault(
    lenient_desk: Desk, lenient: LenientProvider, runner: asyncio.Runner
) -> None:
    lenient.makes = lambda config: None
    with pytest.raises(ProviderMisconfigured, match="'lenient' returned no configuration"):
        runner.run(lenient_desk.do(CreateBinding(WHOLE, "mine", "lenient", {})))


def test_an_adapter_is_opened_with_the_secrets_by_their_paths(
    lenient_desk: Desk, lenient: LenientProvider, runner: asyncio.Runner
) -> None:
    reference = "env://HOLDFAST_SECRET_K"
    config = {"colour": reference, "server": {"key": reference}}
    runner.run(lenient_desk.do(CreateBinding(WHOLE, "mine", "lenient", config)))
    runner.run(lenient_desk.do(Query(WHOLE, "cat", binding_key="mine")))
    assert lenient.opened is not None
    assert {path: secret.revealed() for path, secret in lenient.opened.items()} == {"colour": HELD, "server.key": HELD}
    assert dict(runner.run(lenient_desk.do(GetBinding(WHOLE, "mine"))).config) == config


def test_a_plain_secret_that_is_in_the_store_all_the_same_is_not_used(
    lenient_desk: Desk, lenient: LenientProvider, runner: asyncio.Runner, caplog: pytest.LogCaptureFixture
) -> None:
    """This happens after an update of a provider that marks more fields as secrets."""
    caplog.set_level(logging.DEBUG)
    grant = authorize(LOCAL_OPERATOR, Action.MANAGE_BINDINGS, Scope(space=ACME))
    stored = Binding(BindingId("bnd_1"), ACME, "mine", "lenient", {"server": {"key": CANARY}})
    runner.run(lenient_desk.engine._core.store.write(grant, lambda transaction: transaction.bindings.add(stored)))
    with (
        rows_of(lenient_desk, runner.run) as rows,
        pytest.raises(SecretUnavailable, match=r"config\.server\.key") as told,
    ):
        runner.run(lenient_desk.do(Query(WHOLE, "cat", binding_key="mine")))
    assert lenient.opened is None
    assert CANARY not in f"{told.value}{told.value!r}"
    assert [row.error_code for row in rows] == [SecretUnavailable.code]
    assert CANARY not in full_repr(rows)
    assert CANARY not in caplog.text
