"""A process that dies while it emits or delivers a hook. Child processes import this module by name."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ledgers import KEY, LedgerProvider

from faults import points
from faults.zygote import Tell
from holdfast.app import Engine, open_engine
from holdfast.control.hooks import EmitHook
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.contract import HookKind, SourceKind, SourcePayload, SourceRef
from holdfast.domain.hooks import EmittedHook
from holdfast.domain.scope import Scope
from holdfast.errors import UnknownProvider
from holdfast.providers.local import LocalProvider
from holdfast.settings import Settings

SPACE = "acme"
WHOLE = Scope(space=SPACE)
BOT = Scope(space=SPACE, agent="bot")
WORDS = "We chose Lisbon."


@dataclass(frozen=True)
class Both:
    """Implements `ports.Providers` with our own provider and the ledger."""

    ledger: LedgerProvider

    def list_providers(self) -> list[Any]:
        return [self.ledger, LocalProvider()]

    def get(self, name: str) -> Any:
        found = {KEY: self.ledger, "local": LocalProvider()}.get(name)
        if found is None:
            raise UnknownProvider("provider", f"there is no provider {name!r}")
        return found

    def check_secrets(self, provider: Any, config: Any) -> None: ...

    def adapter(self, binding: Any) -> Any:
        return self.ledger.open(binding.config, {}, None)


class Later:
    """A clock that runs ahead, so that leased and waiting work is due."""

    def __init__(self, **by: float) -> None:
        self.by = timedelta(**by)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.by


@asynccontextmanager
async def desk(location: str, provider: LedgerProvider | None = None, clock: Any = None) -> AsyncIterator[Engine]:
    providers = Both(provider or LedgerProvider())
    engine = await open_engine(location, Settings(), embedder="fake", work=False, providers=providers, clock=clock)
    try:
        yield engine
    finally:
        await engine.close()


async def do(engine: Engine, verb: Any) -> Any:
    return await engine.perform(LOCAL_OPERATOR, verb.action, lambda: verb, space=SPACE)


async def emit(engine: Engine, hook_id: str = "run:r1") -> EmittedHook:
    source = SourceRef(SourceKind.RUN, SPACE, run_id="r1")
    hook = EmitHook(BOT, HookKind.POST_RUN_CAPTURE, hook_id, source, SourcePayload(text=WORDS))
    found: EmittedHook = await do(engine, hook)
    return found


def die_on_the_way(tell: Tell, location: str, point: str, passage: int) -> None:
    """Emit a hook and deliver it; be killed at the n-th passage of a point, or during the adapter's call."""

    def meanwhile(when: str) -> None:
        if point == f"call.{when}":
            os.kill(os.getpid(), signal.SIGKILL)

    async def whole() -> None:
        async with desk(location, LedgerProvider(meanwhile)) as engine:
            if not point.startswith("call."):
                points.die_at(point, passage)
            emitted = await emit(engine)
            tell(emitted=[each.id for each in emitted.deliveries])
            await engine.crew.drain()
        tell(done=True)

    asyncio.run(whole())
