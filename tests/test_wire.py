"""Every verb, answer and error arrives unchanged over the wire."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from pprint import pformat
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic_core import ValidationError

from holdfast import errors, runtime, wire
from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.domain.arguments import result_type_of
from holdfast.domain.conditions import AllOf, AnyOf, Compare, Not
from holdfast.domain.memory import MemoryRecord, Plane, Status, Trust, Validity
from holdfast.domain.results import Absence, Component, Explanation, Page
from holdfast.domain.scope import Scope
from holdfast.domain.search import SearchOptions
from holdfast.domain.transcript import Message, Role
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.runtime.gate import CompositeRequest, Read, Request, Write
from holdfast.runtime.search import Search
from holdfast.testing.full_repr import full_repr
from values import anything, exact

NOW = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
MESSAGE = Message("msg_1", "turn_1", Scope(), 0, "t", None, Role.USER, NOW, NOW, None, None, {"a": "b"})
MEMORY = MemoryRecord(
    "mem_1", 1, Scope(), Plane.EPISODE, "t", Trust.LOW, Status.ACCEPTED, Validity(), NOW, None, None, "me", None
)  # fmt: skip
# The modules of verbs that are not spoken over the wire.
HOSTED = tuple(
    f"holdfast.runtime.{name}" for name in ("transcripts.", "skills.", "evolution.", "tools.", "provider_verbs")
)
VERBS = pytest.mark.parametrize("spoken", wire.all_verbs().values(), ids=wire.all_verbs())


def of_the_runtime() -> set[str]:
    """Names of all verbs that the gate accepts. By name, because `slots=True` leaves a twin class without slots.

    Excludes the verbs of a `MemoryRuntime`, which runs in the process of its store, and the verbs that only the
    provider `local` runs, beneath a call of the control plane.
    """
    for module in pkgutil.iter_modules(runtime.__path__, "holdfast.runtime."):
        importlib.import_module(module.name)

    def below(kind: type) -> Iterator[type]:
        for child in kind.__subclasses__():
            apart = child.__module__.startswith(HOSTED)
            if child.__module__.startswith("holdfast.runtime.") and not apart:
                yield child
                yield from below(child)

    return {named(found) for found in below(Request) if not inspect.isabstract(found) and is_dataclass(found)}


def named(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def test_every_verb_of_the_runtime_is_spoken() -> None:
    assert of_the_runtime() == {named(kind) for kind in wire.SPOKEN}
    assert len(wire.VERBS) == len(wire.SPOKEN)


# --- round trips ----------------------------------------------------------------------------------------------------

READING = {
    "query", "explain_query", "list_records", "get_record", "read_provider_profile", "list_provider_jobs", "hydrate",
}  # fmt: skip
CHECKS = [HealthCheck.filter_too_much, HealthCheck.too_slow]
EXAMPLES = int(os.environ.get("HOLDFAST_WIRE_EXAMPLES", "15"))  # per verb, and per answer


@VERBS
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=CHECKS)
@given(data=st.data())
def test_every_verb_arrives_as_it_was_sent(spoken: wire.WireVerb, data: st.DataObject) -> None:
    try:
        sent = data.draw(anything(spoken.request_type))
    except InvalidInput:
        assume(False)
    body = spoken.request.encode(sent)
    arrived = spoken.request.decode(body)
    assert arrived == sent
    assert type(arrived) is type(sent)
    assert spoken.request.encode(arrived) == body
    assert json.loads(body).keys() == {each.name for each in fields(sent)}


@VERBS
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=CHECKS)
@given(data=st.data())
def test_every_answer_arrives_as_it_was_given(spoken: wire.WireVerb, data: st.DataObject) -> None:
    told = data.draw(anything(spoken.answer_type))
    body = spoken.answer.encode(told)
    json.loads(body, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    arrived = spoken.answer.decode(body)
    assert arrived == told
    # Types and time zones too, beyond equality; sets in order.
    assert pformat(exact(arrived), width=1) == pformat(exact(told), width=1)


def test_a_verb_says_what_it_answers() -> None:
    assert (wire.VERBS[Action.LIST].answer_type, wire.VERBS[Action.WORK].answer_type) == (Page, int)

    class Silent(Read[Any, Any]):
        pass

    Silent.__orig_bases__ = ()  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="Silent does not declare"):
        result_type_of(Silent)


@VERBS
def test_what_writes_is_told_from_what_reads(spoken: wire.WireVerb) -> None:
    if issubclass(spoken.request_type, CompositeRequest):
        assert spoken.writes == (spoken.name not in READING)
    else:
        assert spoken.writes == issubclass(spoken.request_type, Write)
        assert spoken.writes != issubclass(spoken.request_type, Read)


def test_a_message_and_a_memory_stay_what_they_are() -> None:
    form = wire.VERBS[Action.LIST].answer
    page = form.decode(form.encode(Page((MESSAGE, MEMORY), None)))
    assert [type(item) for item in page.items] == [Message, MemoryRecord]
    assert page.items == (MESSAGE, MEMORY)
    assert (page.items[1].trust, type(page.items[1].trust)) == (Trust.LOW, Trust)


def test_a_condition_arrives_with_its_moments() -> None:
    form = wire.VERBS[Action.SEARCH].request
    asked = AllOf(
        (
            AnyOf((Compare("sender", "in", ("ana", "2026-01-01T00:00:00Z")), Not(Compare("plane", "eq", "episode")))),
            Compare("said_at", "lt", NOW),
            Compare("said_at", "in", (NOW, datetime.max.replace(tzinfo=UTC))),
        )
    )
    arrived = form.decode(form.encode(Search(Scope(), "q", SearchOptions(condition=asked)))).options.condition
    assert arrived == asked
    assert full_repr(arrived) == full_repr(asked)


def test_scores_that_are_no_numbers_arrive() -> None:
    form = wire.VERBS[Action.EXPLAIN].answer
    odd = Component("x", math.nan, math.inf, -math.inf, 5e-324)
    told = Explanation({}, (), 0, "e", Absence("a", "b", components=(odd,)))
    arrived = form.decode(form.encode(told)).absence.components[0]
    assert math.isnan(arrived.raw)
    assert (arrived.normalized, arrived.weight, arrived.contribution) == (math.inf, -math.inf, 5e-324)


@pytest.mark.parametrize("moment", [datetime.min, datetime.max, NOW, datetime(1969, 12, 31, 23, 59, 59, 999999)])
def test_moments_keep_their_microseconds_and_are_in_utc(moment: datetime) -> None:
    form, moment = wire.VERBS[Action.SEARCH].request, moment.replace(tzinfo=UTC)
    arrived = form.decode(form.encode(Search(Scope(), "q", SearchOptions(as_of=moment)))).options.as_of
    assert (arrived, arrived.tzinfo) == (moment, UTC)


def test_sets_are_written_in_order_whatever_the_process() -> None:
    program = (
        "from holdfast.wire import *; from holdfast.domain.memory import Plane;"
        "from holdfast.runtime.search import Search;"
        "from holdfast.domain.scope import Scope; from holdfast.ports import SearchOptions;"
        "search = Search(Scope(), 'q', SearchOptions(planes=frozenset(Plane)));"
        "print(VERBS[Action.SEARCH].request.encode(search).decode())"
    )
    written = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(written) == 1
    assert json.loads(written.pop())["options"]["planes"] == sorted(Plane)


# --- refusals -------------------------------------------------------------------------------------------------------

SECRET = "hunter2"
WRONG = [
    ('{"scope":{"subject":"ana","hunter":1},"query":"q"}', "scope", "unknown field"),
    ('{"scope":{},"query":"q","top_k":1}', "request", "known are scope, query, options"),
    ('{"scope":{"subject":5},"query":"q"}', "scope.subject", "expected text"),
    ('{"scope":{"subject":" "},"query":"q"}', "subject", "empty"),
    ('{"query":"q"}', "scope", "missing"),
    ('{"scope":null,"query":"q"}', "scope", "expected an object"),
    ('{"scope":{},"query":["hunter2"]}', "query", "expected text"),
    ('{"scope":{},"query":"q","options":{"as_of":1700000000}}', "options.as_of", "ISO 8601"),
    ('{"scope":{},"query":"q","options":{"as_of":"hunter2"}}', "options.as_of", "ISO 8601"),
    ('{"scope":{},"query":"q","options":{"as_of":"2026-01-01"}}', "options.as_of", "ISO 8601"),
    ('{"scope":{},"query":"q","options":{"as_of":"2026-01-01T00:00:00"}}', "options.as_of", "offset"),
    ('{"scope":{},"query":"q","options":{"as_of":"0001-01-01T00:00:00+05:00"}}', "options.as_of", "outside the years"),
    ('{"scope":{},"query":"q","options":{"min_score":NaN}}', "min_score", "must be a number"),
    ('{"scope":{},"query":"q","options":{"min_score":"NaN"}}', "options.min_score", "expected a number"),
    ('{"scope":{},"query":"q","options":{"min_score":1e999}}', "min_score", "must be a number"),
    ('{"scope":{},"query":"q","options":{"top_k":"5"}}', "options.top_k", "whole number"),
    ('{"scope":{},"query":"q","options":{"top_k":5.0}}', "options.top_k", "whole number"),
    ('{"scope":{},"query":"q","options":{"top_k":true}}', "options.top_k", "whole number"),
    ('{"scope":{},"query":"q","options":{"top_k":1' + "0" * 400 + "}}", "top_k", "from 1 to 1,000"),
    ('{"scope":{},"query":"q","options":{"top_k":1' + "0" * 9_000 + "}}", "request", "JSON"),
    ('{"scope":{},"query":"q","options":{"planes":["hunter2"]}}', "options.planes[0]", "long_term"),
    ('{"scope":{},"query":"hunter2\\ud800"}', "request", "JSON"),
    ("[" * 100_000, "request", "JSON"),
    ("", "request", "JSON"),
    ("null", "request", "object"),
    ("[]", "request", "object"),
    ('{"scope":{},"query":"hunter2', "request", "JSON"),
]


@pytest.mark.parametrize(("body", "field", "problem"), WRONG, ids=[f"{body:.50}" for body, _, _ in WRONG])
def test_a_request_that_cannot_be_read_is_refused_by_the_name_of_its_field(body: str, field: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        wire.VERBS[Action.SEARCH].request.decode(body.encode())
    assert (refused.value.field, problem in refused.value.problem) == (field, True), refused.value
    assert SECRET not in f"{refused.value!r}{refused.value.__context__!r}{refused.value.__cause__!r}"


@pytest.mark.parametrize("ids", [[1, 2, 3], [[], {}]])
def test_of_many_values_that_are_wrong_only_the_first_is_looked_at(ids: list[Any]) -> None:
    spoken = wire.VERBS[Action.FORGET]
    body = json.dumps({"scope": {}, "target": {"ids": ids}}).encode()
    with pytest.raises(ValidationError) as caught:
        spoken.request._validator.validate_json(body, strict=True)
    assert caught.value.error_count() == 1


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidInput, match="JSON"):
        wire.VERBS[Action.SEARCH].request.decode(b'{"scope":{},"query":"\xff"}')


def test_an_answer_of_a_newer_server_is_read_without_what_is_new_in_it() -> None:
    form = wire.VERBS[Action.STATS].answer
    told = {
        "messages": 1, "memories": 2, "conversations": 3, "partitions": 4, "tombstones": 5, "pending_vectors": 6,
        "jobs": {}, "embedder": "fake", "moods": 7,
    }  # fmt: skip
    assert form.decode(json.dumps(told).encode()).memories == 2
    with pytest.raises(InvalidInput, match="messages: is missing"):
        form.decode(b'{"memories": 2}')


def test_what_cannot_be_written_is_refused_without_its_text() -> None:
    with pytest.raises(InvalidInput) as refused:
        wire.VERBS[Action.ADD].request.encode("hunter2\ud800")
    assert SECRET not in f"{refused.value!r}{refused.value.__context__!r}{refused.value.__cause__!r}"
    with pytest.raises(InvalidInput) as refused:
        wire.GREETING.encode(wire.Greeting("hunter2\ud800", Actor(ActorKind.USER, "a"), ()))
    assert SECRET not in f"{refused.value!r}{refused.value.__context__!r}{refused.value.__cause__!r}"


# --- errors ---------------------------------------------------------------------------------------------------------

ERRORS = [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, HoldfastError)]


def made(kind: type[HoldfastError]) -> HoldfastError:
    return kind("some.field", "is: wrong") if issubclass(kind, InvalidInput) else kind("it: went wrong")


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_is_the_same_at_the_other_end(kind: type[HoldfastError]) -> None:
    sent = made(kind)
    arrived = wire.decode_error(json.dumps(wire.error_body(sent)).encode())
    assert (type(arrived), str(arrived), vars(arrived)) == (kind, str(sent), vars(sent))


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_is_the_same_out_of_a_problem(kind: type[HoldfastError]) -> None:
    sent = made(kind)
    problem: dict[str, Any] = {"type": "urn:x", "title": "x", "status": 400, "detail": str(sent), "code": sent.code}
    if isinstance(sent, InvalidInput):
        problem["errors"] = [{"field": sent.field, "problem": sent.problem}, {"field": "other", "problem": "too"}]
    arrived = wire.error_from(problem)
    assert (type(arrived), str(arrived), vars(arrived)) == (kind, str(sent), vars(sent))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>", b"null", b"[]", b"5", b"{}", b'{"code": 5, "message": "x"}',
        b'{"code": "nope", "message": "x"}',
        b'{"code": "not_found"}', b'{"code": "not_found", "message": 5}', b'{"code": ["not_found"], "message": "x"}',
        b"\xff", b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_error_of_ours_is_none(body: bytes) -> None:
    assert wire.decode_error(body) is None


def test_an_invalid_input_that_names_no_field_is_one_all_the_same() -> None:
    for body in ({}, {"errors": []}, {"errors": [5]}, {"fields": {"a": "b"}}):
        arrived = wire.error_from({"code": "invalid_text", "message": "too long", **body})
        assert (type(arrived), str(arrived)) == (errors.InvalidText, "request: too long")


# --- OpenAPI --------------------------------------------------------------------------------------------------------


def test_the_schemas_of_all_verbs_refer_to_nothing_that_is_not_there() -> None:
    asked, told, shared = wire.openapi_definitions("#/components/schemas/verbs.{model}")
    assert asked.keys() == told.keys() == wire.all_verbs().keys()
    written = json.dumps([{str(action): found for action, found in (*asked.items(), *told.items())}, shared])
    referred = {part.split('"')[0] for part in written.split("#/components/schemas/verbs.")[1:]}
    assert referred <= set(shared)
    assert shared["SearchOptions"]["additionalProperties"] is False
    assert shared["Draft"]["properties"]["said_at"]["anyOf"][0] == {"format": "date-time", "type": "string"}
