"""A paid embedder under our own store: each of its calls is in the ledger, with the operation that needed it. On both
stores."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from desk import ACME, AGENT, BOT, NOTE, WHOLE, Desk, text
from misbehaving import HostileProvider

from holdfast.control.costs import ListCostEvents, SetPrice
from holdfast.control.hydration import Hydrate
from holdfast.control.memory import Capture, ExplainQuery, Query, UpsertRecords
from holdfast.control.routing import route_verb
from holdfast.domain.access import storewide_grant
from holdfast.domain.contract import AttributionMode, BillingType, NewRecord, Usage
from holdfast.domain.costs import CostEvent, Price
from holdfast.domain.operations import Operation, Outcome
from holdfast.ports import SearchOptions
from holdfast.runtime.flush import Flush
from holdfast.runtime.recall import RecallMemory
from holdfast.runtime.search import Search
from holdfast.search.embedders.openai import OpenAIEmbedder
from serving import answering, http

HOST = "127.0.0.1"
TOKENS = 500_000
SAYING = {"usage": {"prompt_tokens": TOKENS, "total_tokens": TOKENS}}
TOOK = Usage(HOST, model="m", billing_type=BillingType.METERED_API, embedding_tokens=TOKENS, details={"requests": 1})
RUN = replace(BOT, run="run-1")
ASKING: dict[str, tuple[Callable[[], Any], Any]] = {
    "query": (lambda: Query(RUN, "cat"), Query),
    "explain": (lambda: ExplainQuery(RUN, "cat"), ExplainQuery),
    "hydrate": (lambda: Hydrate(RUN, "cat", budget_ms=5_000), Hydrate),
    "the library's search": (lambda: route_verb(Search(RUN, "cat")), Search),
    "the library's recall": (lambda: route_verb(RecallMemory(RUN, "cat", SearchOptions(top_k=3))), RecallMemory),
}


def embedding(**more: Any) -> bytes:
    return http(200, json.dumps({"data": [{"index": 0, "embedding": [0.6, 0.8, 0.0]}], **more}).encode())


@contextmanager
def opened(location: str, runner: asyncio.Runner, *replies: bytes) -> Iterator[Desk]:
    """A desk whose embedder is a service with these responses, priced at 20,000 micros per million tokens."""
    with answering(*replies) as (url, _):
        embedder = OpenAIEmbedder("m", base_url=url, api_key="k", attempts=1)
        desk = runner.run(Desk.opened(location, HostileProvider(), embedder=embedder))
        runner.run(desk.do(SetPrice(WHOLE, Price(HOST, "m", embedding_micros=20_000))))
        yield desk
        runner.run(desk.close())


def ledger(desk: Desk, runner: asyncio.Runner) -> Sequence[CostEvent]:
    found: Sequence[CostEvent] = runner.run(desk.do(ListCostEvents(WHOLE))).items
    return found


def in_the_store(desk: Desk, runner: asyncio.Runner) -> list[Operation]:
    """The committed rows, without waiting for rows that are not committed yet."""
    store = desk.engine._core.store
    rows = runner.run(store.read(storewide_grant(), lambda reader: reader.operations.page(limit=100)))
    return [row for row in rows if row.scope.run == "run-1"]


@pytest.mark.parametrize("name", ASKING)
def test_what_asks_is_charged_in_one_commit_with_its_row(location: str, runner: asyncio.Runner, name: str) -> None:
    with opened(location, runner, embedding(**SAYING)) as desk:
        make, kind = ASKING[name]
        runner.run(desk.make(make, kind, AGENT))
        (row,) = in_the_store(desk, runner)
        (event,) = ledger(desk, runner)
    assert row.outcome is Outcome.SUCCEEDED
    assert row.attribution is not None
    assert (row.attribution.binding, row.attribution.provider) == ("default", "local")
    assert (row.attribution.usage, row.attribution.mode) == ((TOOK,), AttributionMode.BILLED_DIRECTLY)
    assert row.attribution.cost_events == (event.id,)
    assert (event.operation_id, event.binding, event.scope, event.usage) == (row.id, "default", row.scope, TOOK)
    assert (event.amount_micros, event.currency, event.estimated) == (10_000, "USD", True)


def test_a_search_that_no_binding_serves_is_charged_to_its_company(location: str, runner: asyncio.Runner) -> None:
    """The library without a service does this: the search uses our own store, without a binding."""
    with opened(location, runner, embedding(**SAYING)) as desk:
        runner.run(desk.do(Search(RUN, "cat"), AGENT))
        (row,) = in_the_store(desk, runner)
        (event,) = ledger(desk, runner)
    assert row.attribution is not None
    assert (row.attribution.usage, row.attribution.cost_events) == ((TOOK,), (event.id,))
    assert (event.operation_id, event.binding, event.amount_micros) == (row.id, None, 10_000)


@pytest.mark.parametrize(
    "reply",
    [embedding(), embedding(usage={"prompt_tokens": "many"}), http(503), http(200, b"<html>")],
    ids=["says nothing", "says nonsense", "is down", "is no embedder"],
)
def test_an_embedder_that_does_not_say_what_it_took_is_in_no_ledger(
    location: str, runner: asyncio.Runner, reply: bytes
) -> None:
    with opened(location, runner, reply) as desk:
        runner.run(desk.do(Query(RUN, "cat"), AGENT))
        assert ledger(desk, runner) == ()
        (row,) = runner.run(desk.listed(run="run-1"))
    assert row.outcome is Outcome.SUCCEEDED
    assert row.attribution is not None
    assert (row.attribution.usage, row.attribution.cost_events) == ((), ())


def test_what_is_made_of_a_query_is_the_same_with_and_without_a_price(location: str, runner: asyncio.Runner) -> None:
    with opened(location, runner, embedding(**SAYING)) as desk:
        runner.run(desk.do(Capture(BOT, NOTE, text("The cat sat.")), AGENT))
        answer = runner.run(desk.do(Query(RUN, "cat"), AGENT))
        (row,) = in_the_store(desk, runner)
    (snippet,) = answer.result.snippets
    assert snippet.text == "The cat sat."
    assert row.record_count == 1
    assert row.attribution is not None
    assert row.attribution.handles == (snippet.handle.record_id,)
    assert answer.operation_id == row.id


WRITING: dict[str, Callable[[], Any]] = {
    "capture": lambda: Capture(RUN, NOTE, text("The cat sat.")),
    "upsert": lambda: UpsertRecords(RUN, (NewRecord("The cat sat."),)),
}


@pytest.mark.parametrize("name", WRITING)
def test_vectors_that_a_job_makes_are_put_down_to_what_was_written(
    location: str, runner: asyncio.Runner, name: str
) -> None:
    """A write does not wait for a remote embedder. A job calls it; the commit that ends the job records the cost."""
    with opened(location, runner, embedding(**SAYING)) as desk:
        answer = runner.run(desk.do(WRITING[name](), AGENT))
        assert ledger(desk, runner) == ()
        runner.run(desk.engine.crew.drain())
        (event,) = ledger(desk, runner)
        runner.run(desk.engine.crew.drain())
        assert ledger(desk, runner) == (event,)
    assert (event.operation_id, event.binding) == (answer.operation_id, "default")
    assert (event.scope.space, event.scope.agent, event.scope.run) == (ACME, "bot", "run-1")
    assert (event.usage, event.amount_micros, event.estimated) == (TOOK, 10_000, True)


def test_what_is_learned_of_a_capture_is_put_down_to_it_too(location: str, runner: asyncio.Runner) -> None:
    with opened(location, runner, embedding(**SAYING)) as desk:
        answer = runner.run(desk.do(Capture(RUN, NOTE, text("I live in Lisbon.")), AGENT))
        runner.run(desk.engine.crew.drain())
        found = ledger(desk, runner)
    assert len(found) == 2
    assert {event.operation_id for event in found} == {answer.operation_id}


def test_a_flush_that_makes_vectors_is_in_the_ledger(location: str, runner: asyncio.Runner) -> None:
    with opened(location, runner, embedding(**SAYING)) as desk:
        session = replace(RUN, conversation="c1")
        runner.run(desk.do(Capture(session, NOTE, text("The cat sat.")), AGENT))
        runner.run(desk.do(Flush(session), AGENT))
        (event,) = ledger(desk, runner)
        runner.run(desk.engine.crew.drain())
        assert ledger(desk, runner) == (event,)
    assert (event.scope.agent, event.usage, event.amount_micros) == ("bot", TOOK, 10_000)
