"""Costs of our own model are in the ledger: one entry per call, at the company's prices."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from writers import CHAT, Host, Proposing, hosting, repeating

from completions import chat_curator
from holdfast import AsyncMemory
from holdfast.control.costs import ListCostEvents, SetPrice, SummarizeCosts
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.contract import AttributionMode, BillingType
from holdfast.domain.costs import CostEvent, CostGroup, Price
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.runtime_api.transcripts import MemoryTranscriptCommitRequest, TranscriptTurnInput, TurnMessage
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message
from holdfast.errors import ModelUnavailable
from holdfast.ports import CurationResult, ModelCallUsage, Purpose
from holdfast.ports.models import EmbeddingResult
from holdfast.search.embedders.fake import FakeEmbedder


class Failing(Proposing):
    """A model that is called and paid, but fails."""

    async def curate(self, messages: Sequence[Message], known: Sequence[MemoryRecord] = ()) -> CurationResult:
        return CurationResult((), ModelCallUsage("test-model", 2, 500, 0), failure=ModelUnavailable("rubbish"))


class Free(Proposing):
    """A self-hosted model that costs nothing."""

    async def curate(self, messages: Sequence[Message], known: Sequence[MemoryRecord] = ()) -> CurationResult:
        return replace(await super().curate(messages), usage=ModelCallUsage("own-model"))


class Metered(FakeEmbedder):
    """A remote embedder, billed by the words it embeds."""

    provider = "embedding.example"

    @property
    def local(self) -> bool:
        return False

    async def embed_metered(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingResult:
        words = sum(len(text.split()) for text in texts)
        return EmbeddingResult(self.vectors(texts), ModelCallUsage("small", requests=1, input_tokens=words))


async def spoken(host: Host, words: str, turn: str) -> None:
    given = TranscriptTurnInput(turn, (TurnMessage(words),), conversation=CHAT)
    assert (await host.commit_transcript(MemoryTranscriptCommitRequest(given))).committed


async def do(host: Host, verb: Any) -> Any:
    return await host.engine.perform(LOCAL_OPERATOR, verb.action, lambda: verb, space=verb.scope.space)


async def ledger(host: Host, space: Scope) -> list[CostEvent]:
    found: list[CostEvent] = list((await do(host, ListCostEvents(space))).items)
    return found


def test_each_time_the_model_is_asked_is_one_event_by_the_price_of_its_company(location: str) -> None:
    async def whole() -> None:
        async with hosting(location, curator=Proposing(repeating)) as host:
            space = Scope(space="default")
            await spoken(host, "I live in Porto.", "t1")
            assert (await host.maintain()).changed
            (first,) = await ledger(host, space)
            assert (first.amount_micros, first.estimated, first.usage.provider) == (0, True, "model")
            # Another company's price does not apply.
            await do(host, SetPrice(Scope(space="globex"), Price("model", "*", "USD", 10**9, 0, 10**9)))
            price = Price("model", "test-model", "EUR", input_micros=150_000, output_micros=600_000)
            await do(host, SetPrice(space, price))
            await spoken(host, "I have a dog.", "t2")
            assert (await host.maintain()).changed
            second, _ = await ledger(host, space)
            assert (second.amount_micros, second.currency, second.estimated) == (15 + 12, "EUR", True)
            assert (second.usage.input_tokens, second.usage.output_tokens, second.usage.model) == (
                100,
                20,
                "test-model",
            )
            assert second.usage.billing_type is BillingType.METERED_API
            assert second.usage.attribution_mode is AttributionMode.UNTRACKED
            assert second.scope.subject == "ana"
            # Without new messages, no model is called.
            assert not (await host.maintain()).changed
            assert len(await ledger(host, space)) == 2
            assert await ledger(host, Scope(space="globex")) == []
            summary = await do(host, SummarizeCosts(space, CostGroup.MODEL))
            assert summary.totals == {"EUR": 27, "USD": 0}

    asyncio.run(whole())


def test_a_model_that_was_no_use_was_paid_for_all_the_same(location: str) -> None:
    async def whole() -> None:
        async with hosting(location, curator=Failing(repeating)) as host:
            await spoken(host, "I live in Porto.", "t1")
            assert not (await host.maintain()).changed
            events = await ledger(host, Scope(space="default"))
            assert {(event.usage.input_tokens, event.usage.details["requests"]) for event in events} == {(500, 2)}

    asyncio.run(whole())


def test_an_embedder_is_paid_for_what_a_free_model_learned(location: str) -> None:
    async def whole() -> None:
        async with hosting(location, curator=Free(repeating), embedder=Metered(16)) as host:
            space = Scope(space="default")
            await do(host, SetPrice(space, Price("embedding.example", "*", "EUR", embedding_micros=1_000_000)))
            await spoken(host, "I live in Porto.", "t1")
            assert (await host.maintain()).changed
            # Once for the message, and once for the memory, which repeats it word for word.
            paid = [
                (event.usage.provider, event.amount_micros, event.scope.subject) for event in await ledger(host, space)
            ]
            assert paid == [("embedding.example", 4, "ana")] * 2

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("url", "provider"), [("https://api.openai.com/v1", "api.openai.com"), ("http://127.0.0.1:11434/v1", "127.0.0.1")]
)
def test_a_model_is_paid_at_its_endpoints_host(url: str, provider: str) -> None:
    curator = chat_curator("small", base_url=url)
    assert curator.provider == provider
    asyncio.run(curator.close())


@pytest.mark.parametrize(("model", "tokens"), [(Proposing(repeating), 100), (Failing(repeating), 500)])
def test_a_flush_pays_for_its_model_whatever_comes_of_it(location: str, model: Proposing, tokens: int) -> None:
    async def whole() -> None:
        async with hosting(location, curator=model) as host:
            memory = AsyncMemory(host.engine)
            await spoken(host, "I live in Porto.", "t1")
            for _ in range(2):  # sealed once, asked about once
                await memory.flush(subject="ana", conversation="chat")
                await memory.drain()
            (event,) = await ledger(host, Scope(space="default"))
            assert (event.usage.input_tokens, event.usage.model, event.scope.subject) == (tokens, "test-model", "ana")
            assert event.usage.details["job"] in {job.id for job in await memory.jobs()}

    asyncio.run(whole())
