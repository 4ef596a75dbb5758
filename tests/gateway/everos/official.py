"""The official clients of EverOS, unmodified, against a gateway of the tests."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import everos
from served import MOMENT, Gateway

import holdfast

CLIENTS = {"sync": everos.EverOS, "async": everos.AsyncEverOS}


class Official(AbstractContextManager["Official"]):
    """A blocking or an asynchronous client, whose calls are awaited here."""

    def __init__(self, gateway: Gateway, key: str, user_id: str, kind: str = "sync") -> None:
        self.user_id = user_id
        self._runner = asyncio.Runner()
        self.client: Any = CLIENTS[kind](api_key=key, base_url=gateway.url, max_retries=0)

    def __exit__(self, *_: object) -> None:
        self.done(self.client.close())
        self._runner.close()

    @property
    def memories(self) -> Any:
        return self.client.v1.memories

    def done(self, call: Any) -> Any:
        """The result of a call."""

        async def finish() -> Any:
            return await call

        return self._runner.run(finish()) if inspect.isawaitable(call) else call

    def said(self, *texts: str, at: int = MOMENT, role: str = "user") -> list[dict[str, Any]]:
        return [{"role": role, "timestamp": at + index, "content": text} for index, text in enumerate(texts)]

    def add(self, *texts: str, session: str | None = "s1", at: int = MOMENT, **more: Any) -> Any:
        messages = self.said(*texts, at=at)
        call = self.memories.add(user_id=self.user_id, session_id=session, messages=messages, **more)
        return self.done(call).data

    def work(self, messages: Sequence[dict[str, Any]], session: str = "s1", **more: Any) -> Any:
        """Add the messages of an agent's work."""
        call = self.memories.agent.add(user_id=self.user_id, session_id=session, messages=messages, **more)
        return self.done(call).data

    def search(self, query: str, filters: dict[str, Any] | None = None, **more: Any) -> Any:
        named = {"user_id": self.user_id, **(filters or {})}
        return self.done(self.memories.search(query=query, filters=named, **more)).data

    def found(self, query: str, filters: dict[str, Any] | None = None, **more: Any) -> list[str]:
        return [each.episode for each in self.search(query, filters, **more).episodes]

    def get(self, memory_type: str = "episodic_memory", filters: dict[str, Any] | None = None, **more: Any) -> Any:
        named = {"user_id": self.user_id, **(filters or {})}
        return self.done(self.memories.get(memory_type=memory_type, filters=named, **more)).data

    def listed(self, filters: dict[str, Any] | None = None, **more: Any) -> list[str]:
        return [each.episode for each in self.get(filters=filters, **more).episodes]

    def delete(self, **target: str | None) -> None:
        assert self.done(self.memories.delete(**target)) is None


def issue_key(gateway: Gateway, name: str, **rights: Any) -> str:
    """Create a key of an agent or an operator."""
    with holdfast.open(gateway.url, key=gateway.token) as memory:
        key = memory.create_user(name, space="default", **rights).key
    assert key is not None
    return key
