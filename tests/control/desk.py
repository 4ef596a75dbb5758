"""A control plane for tests: an engine, calls of its verbs, and the operation rows that they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from misbehaving import HostileProvider

from holdfast.app import Engine, open_engine
from holdfast.control.activity import ListActivity
from holdfast.control.bindings import CreateBinding, SetTarget
from holdfast.control.operations import ListOperations
from holdfast.domain.access import LOCAL_OPERATOR, Actor, ActorKind, storewide_grant
from holdfast.domain.bindings import Binding, TargetKind
from holdfast.domain.contract import SourceKind, SourcePayload, SourceRef
from holdfast.domain.control import Activity
from holdfast.domain.operations import Operation, OperationFilter
from holdfast.domain.scope import Scope
from holdfast.errors import UnknownProvider
from holdfast.ports.provider import Adapter, Provider
from holdfast.settings import Settings

ACME, OTHER = "acme", "globex"
WHOLE = Scope(space=ACME)
BOT = Scope(space=ACME, agent="bot")
AGENT = Actor(ActorKind.AGENT, "bot", ACME)
OPERATOR = Actor(ActorKind.OPERATOR, "boss", ACME)
NOTE = SourceRef(SourceKind.MANUAL_NOTE, ACME)


def text(words: str) -> SourcePayload:
    return SourcePayload(text=words)


@dataclass(frozen=True)
class Installed:
    """Implements `ports.Providers` with a fixed list."""

    providers: Sequence[Provider]

    def list_providers(self) -> Sequence[Provider]:
        return sorted(self.providers, key=lambda each: each.key)

    def get(self, name: str) -> Provider:
        for each in self.providers:
            if each.key == name:
                return each
        raise UnknownProvider("provider", f"there is no provider {name!r}")

    def check_secrets(self, provider: Provider, config: Mapping[str, Any]) -> None:
        """These providers have no secrets."""

    def adapter(self, binding: Binding) -> Adapter:
        return self.get(binding.provider).open(binding.config, {}, None)


def local() -> Provider:
    from holdfast.providers.local import LocalProvider

    return LocalProvider()


@dataclass
class Desk:
    engine: Engine
    hostile: HostileProvider

    @classmethod
    async def opened(cls, location: str, hostile: HostileProvider, **options: Any) -> Desk:
        providers = Installed([local(), hostile])
        engine = await open_engine(
            location, Settings(), **{"embedder": "fake", "work": False, "providers": providers, **options}
        )
        return cls(engine, hostile)

    async def close(self) -> None:
        self.hostile.let_go()
        await self.engine.close()

    async def do(self, verb: Any, actor: Actor = LOCAL_OPERATOR) -> Any:
        return await self.make(lambda: verb, type(verb), actor)

    async def make(self, make: Callable[[], Any], kind: Any, actor: Actor = LOCAL_OPERATOR) -> Any:
        """Perform a verb whose construction may fail."""
        return await self.engine.perform(actor, kind.action, make, space=actor.space or ACME)

    async def rows(self) -> Sequence[Operation]:
        """Every operation, oldest first."""
        store = self.engine._core.store
        await store.wait_for_audits()
        found = await store.read(storewide_grant(), lambda reader: reader.operations.page(limit=1_000_000))
        return found[::-1]

    async def listed(self, **wanted: Any) -> Sequence[Operation]:
        """The operations that an operator lists, newest first."""
        page = await self.do(ListOperations(WHOLE, OperationFilter(**wanted)))
        found: Sequence[Operation] = page.items
        return found

    async def activity(self) -> Sequence[Activity]:
        page = await self.do(ListActivity(WHOLE))
        found: Sequence[Activity] = page.items
        return found

    async def bind_outside(self, **config: Any) -> Binding:
        """Bind the company to the hostile provider."""
        made: Binding = await self.do(CreateBinding(WHOLE, "elsewhere", "hostile", config))
        await self.do(SetTarget(WHOLE, TargetKind.COMPANY, ACME, "elsewhere"))
        return made


@contextmanager
def rows_of(desk: Desk, run: Callable[[Any], Any]) -> Iterator[list[Operation]]:
    """Collect the operation rows that the block leaves."""
    before = len(run(desk.rows()))
    found: list[Operation] = []
    yield found
    found += run(desk.rows())[before:]
