"""`local` for tests: it has its own engine and performs each verb as the local operator."""

from __future__ import annotations

from typing import Any, TypeVar

from holdfast.app import Engine, open_engine
from holdfast.domain.access import LOCAL_OPERATOR, Actor
from holdfast.domain.ids import OperationId
from holdfast.ports import Verb
from holdfast.providers.local import LocalAdapter, LocalConfiguration
from holdfast.settings import Settings

T = TypeVar("T")


class Through:
    """Implements `ports.provider.NestedCall` with a whole call for each verb."""

    def __init__(self, engine: Engine, actor: Actor = LOCAL_OPERATOR) -> None:
        self.engine = engine
        self._actor = actor

    @property
    def idempotency_key(self) -> str | None:
        return None

    @property
    def operation_id(self) -> OperationId:
        return OperationId("op_of_the_test")

    async def run(self, verb: Verb[T]) -> T:
        action: Any = verb.action  # type: ignore[attr-defined]
        return await self.engine.perform(self._actor, action, lambda: verb, space=verb.scope.space)


class OwnLocal(LocalAdapter):
    """Also close the engine."""

    def __init__(self, engine: Engine, **config: Any) -> None:
        super().__init__(LocalConfiguration(**config), Through(engine))
        self.engine = engine

    async def close(self) -> None:
        await self.engine.close()


async def opened_local(location: str, **config: Any) -> OwnLocal:
    return OwnLocal(await open_engine(location, Settings(), embedder="fake", work=False), **config)
