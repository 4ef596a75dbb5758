"""Metadata across our APIs: values keep their types, and forged ones under our reserved names break nothing."""

from __future__ import annotations

import asyncio
import json

import pytest
from desk import ACME, AGENT, BOT, OTHER, Desk

from holdfast.control.json_views import to_json
from holdfast.control.memory import GetRecord, ListRecords, Query, UpsertRecords
from holdfast.domain.checks import Scalar
from holdfast.domain.contract import NewRecord
from holdfast.domain.contract_records import CaptureMetadata, digest_form, encode_metadata
from holdfast.runtime.lookup import Get
from holdfast.runtime.remember import Remember

FORGED: dict[str, Scalar] = {
    "no text": '{"kind": "run", "space": "acme", "issue_id": {"a": 1}}',
    "no company": '{"kind": "run", "space": 7}',
    "another company": json.dumps({"kind": "run", "space": OTHER, "run_id": "theirs"}),
    "no kind": '{"space": "acme"}',
    "odd kind": '{"kind": ["run"], "space": "acme"}',
    "unknown part": '{"kind": "run", "space": "acme", "secret": "x"}',
    "no object": "[]",
    "no JSON": "{",
    "no text at all": 5,
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_source_that_is_none_is_not_shown_and_keeps_nobody_from_reading(
    desk: Desk, runner: asyncio.Runner, forged: Scalar
) -> None:
    noted = {"holdfast.source": forged, "holdfast.summary": 5, "holdfast.json": '{"n": 1e999}', "plain": "kept"}
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


def test_values_keep_their_types_from_one_api_to_the_other(desk: Desk, runner: asyncio.Runner) -> None:
    plain = {"text": "x", "n": 3, "real": 1.0, "yes": True, "none": None}
    noted = {**plain, "tags": ["a", {"b": 1}], "long": 2**70}
    record = NewRecord("The cat sat.", metadata=noted)
    (handle,) = runner.run(desk.do(UpsertRecords(BOT, (record,)), AGENT)).result.records
    listed = runner.run(desk.do(GetRecord(BOT, handle), AGENT)).result
    assert repr(sorted(listed.metadata.items())) == repr(sorted(noted.items()))
    memory = runner.run(desk.do(Get(BOT, handle.record_id), AGENT))
    assert repr({name: memory.metadata[name] for name in plain}) == repr(plain)


def test_the_digest_of_a_retry_is_made_from_the_form_that_older_stores_hold() -> None:
    encoded = encode_metadata(CaptureMetadata(None, "Short.", {"n": 3, "text": "x", "tags": ["a"], "none": None}))
    assert list(digest_form(encoded).items()) == [
        ("text", "x"),
        ("holdfast.json", '{"n":3,"none":null,"tags":["a"]}'),
        ("holdfast.summary", "Short."),
    ]
