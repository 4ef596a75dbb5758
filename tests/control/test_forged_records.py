"""Forged values under our reserved metadata names, written through another API, break nothing here."""

from __future__ import annotations

import asyncio
import json

import pytest
from desk import ACME, AGENT, BOT, OTHER, Desk

from holdfast.control.json_views import to_json
from holdfast.control.memory import GetRecord, ListRecords, Query
from holdfast.runtime.remember import Remember

FORGED = {
    "no text": '{"kind": "run", "space": "acme", "issue_id": {"a": 1}}',
    "no company": '{"kind": "run", "space": 7}',
    "another company": json.dumps({"kind": "run", "space": OTHER, "run_id": "theirs"}),
    "no kind": '{"space": "acme"}',
    "odd kind": '{"kind": ["run"], "space": "acme"}',
    "unknown part": '{"kind": "run", "space": "acme", "secret": "x"}',
    "no object": "[]",
    "no JSON": "{",
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_source_that_is_none_is_not_shown_and_keeps_nobody_from_reading(
    desk: Desk, runner: asyncio.Runner, forged: str
) -> None:
    noted = {"holdfast.source": forged, "holdfast.json": '{"n": 1e999}', "plain": "kept"}
    runner.run(desk.do(Remember(BOT, "The cat sat.", metadata=noted), AGENT))
    (listed,) = runner.run(desk.do(ListRecords(BOT), AGENT)).result.items
    (asked,) = runner.run(desk.do(Query(BOT, "cat"), AGENT)).result.snippets
    given = runner.run(desk.do(GetRecord(BOT, listed.handle), AGENT)).result
    for each in (listed, asked, given):
        assert (each.source, dict(each.metadata)) == (None, {"plain": "kept"})
        assert to_json(each)["source"] is None


def test_a_source_that_is_one_is_shown(desk: Desk, runner: asyncio.Runner) -> None:
    plain = json.dumps({"kind": "run", "space": ACME, "run_id": "r1"})
    runner.run(desk.do(Remember(BOT, "The cat sat.", metadata={"holdfast.source": plain}), AGENT))
    (listed,) = runner.run(desk.do(ListRecords(BOT), AGENT)).result.items
    assert listed.source is not None
    assert listed.source.run_id == "r1"
