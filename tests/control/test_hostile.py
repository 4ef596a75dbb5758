"""A provider that hangs, fails, lies or leaks: its caller gets a typed error in time, the audit trail records it,
and other calls go on. The provider's secrets do not leak."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from desk import ACME, AGENT, BOT, NOTE, OTHER, WHOLE, Desk, rows_of, text
from misbehaving import SECRET, handle, raising, snippet, soon

from holdfast.control import bulkhead
from holdfast.control.bindings import UpdateBinding
from holdfast.control.memory import (
    Capture,
    CorrectRecord,
    ExplainQuery,
    ForgetProviderRecords,
    GetRecord,
    ListProviderJobs,
    ListRecords,
    Query,
    ReadProviderProfile,
    RetryProviderJob,
    UpsertRecords,
)
from holdfast.domain.contract import (
    Capabilities,
    CaptureResult,
    ContextBundle,
    ForgetResult,
    ListPage,
    NewRecord,
    SourceKind,
    SourceRef,
    Usage,
)
from holdfast.domain.operations import Outcome
from holdfast.domain.scope import Scope
from holdfast.errors import (
    AccessDenied,
    CapabilityUnavailable,
    HoldfastError,
    NotFound,
    ProviderError,
    ProviderMalformed,
    ProviderMisconfigured,
    ProviderTimeout,
    ProviderUnavailable,
    SecretUnavailable,
    StoreCorrupt,
)
from holdfast.testing.full_repr import full_repr

SOON = 0.6  # the provider's timeout in seconds, in tests that wait for it
VERBS: dict[str, Callable[[], Any]] = {
    "capture": lambda: Capture(WHOLE, NOTE, text("The cat sat.")),
    "upsert_records": lambda: UpsertRecords(WHOLE, (NewRecord("The cat sat."),)),
    "query": lambda: Query(WHOLE, "cat"),
    "list": lambda: ListRecords(WHOLE),
    "get": lambda: GetRecord(WHOLE, handle()),
    "forget": lambda: ForgetProviderRecords(WHOLE, (handle(),)),
    "correct": lambda: CorrectRecord(WHOLE, handle(), "The dog sat."),
    "profile": lambda: ReadProviderProfile(WHOLE),
    "list_extraction_jobs": lambda: ListProviderJobs(WHOLE),
    "retry_extraction_job": lambda: RetryProviderJob(WHOLE, "j1"),
    "explain": lambda: ExplainQuery(WHOLE, "cat"),
}


class ForeignError(Exception):
    """A third-party exception with a key in its text, as HTTP clients raise."""


def told(error: BaseException) -> str:
    """All printable forms of an error."""
    return "".join(traceback.format_exception(error)) + full_repr(error) + full_repr(vars(error))


def failed(desk: Desk, runner: asyncio.Runner, verb: Any, kind: type[HoldfastError]) -> HoldfastError:
    """Check that the call fails with this error and leaves one row that names the error and the binding."""
    with rows_of(desk, runner.run) as rows, pytest.raises(kind) as raised:
        runner.run(desk.do(verb))
    (row,) = rows
    outcome = Outcome.FAILED if issubclass(kind, ProviderError) else Outcome.REFUSED
    assert (row.action, row.outcome, row.error_code) == (type(verb).action, outcome, raised.value.code)
    assert row.attribution is not None
    assert (row.attribution.binding, row.attribution.provider) == ("elsewhere", "hostile")
    assert SECRET not in told(raised.value) + full_repr(row)
    return raised.value


async def until(so: Callable[[], bool]) -> None:
    """Wait for a condition that another thread brings about."""
    deadline = time.monotonic() + 30
    while not so():
        assert time.monotonic() < deadline, "it did not happen within half a minute"
        await asyncio.sleep(0.01)


def served(desk: Desk, runner: asyncio.Runner) -> None:
    desk.hostile.does.clear()
    assert runner.run(desk.do(Query(WHOLE, "cat"))).result.snippets == (snippet(score=0.5),)


@pytest.mark.parametrize("name", VERBS)
def test_a_well_behaved_provider_serves_every_verb_and_one_row_says_so(
    desk: Desk, runner: asyncio.Runner, name: str
) -> None:
    runner.run(desk.bind_outside())
    with rows_of(desk, runner.run) as rows:
        answer = runner.run(desk.do(VERBS[name]()))
    assert (answer.binding, answer.provider, answer.dropped) == ("elsewhere", "hostile", 0)
    (row,) = rows
    assert (row.id, row.outcome, row.error_code) == (answer.operation_id, Outcome.SUCCEEDED, None)
    assert row.attribution is not None
    assert row.attribution.binding == "elsewhere"
    assert [asked for asked, _ in desk.hostile.asked] == [name]


def test_one_that_hangs_is_waited_for_no_longer_than_its_time(desk: Desk, runner: asyncio.Runner) -> None:
    """All verbs are called concurrently."""
    runner.run(desk.bind_outside(timeout_seconds=SOON))

    async def hang(*_: Any) -> None:
        await asyncio.sleep(60)

    async def everything() -> list[Any]:
        return await asyncio.gather(*(desk.do(verb()) for verb in VERBS.values()), return_exceptions=True)

    desk.hostile.does = dict.fromkeys(VERBS, hang)
    with rows_of(desk, runner.run) as rows:
        errors = runner.run(everything())
    for error in errors:
        assert isinstance(error, ProviderTimeout), error
        assert f"within {SOON} s" in str(error)
        assert SECRET not in told(error)
    assert sorted(row.action for row in rows) == sorted(type(verb()).action for verb in VERBS.values())
    for row in rows:
        assert (row.outcome, row.error_code) == (Outcome.FAILED, ProviderTimeout.code)
        assert row.attribution is not None
        assert (row.attribution.binding, row.attribution.provider) == ("elsewhere", "hostile")
        assert SECRET not in full_repr(row)
    assert sorted(asked for asked, _ in desk.hostile.asked) == sorted(VERBS)
    served(desk, runner)
    assert desk.hostile.opened == 1  # its thread was not blocked


@pytest.fixture
def hears_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count a thread as blocked after a short silence."""
    monkeypatch.setattr(bulkhead, "HEARS_WITHIN_SECONDS", 0.1)


@pytest.mark.usefixtures("hears_sooner")
@pytest.mark.parametrize("name", ["query", "capture", "open"])
def test_one_that_blocks_its_thread_is_given_up_and_opened_anew(desk: Desk, runner: asyncio.Runner, name: str) -> None:
    runner.run(desk.bind_outside(timeout_seconds=SOON))
    desk.hostile.does[name] = desk.hostile.block
    failed(desk, runner, VERBS[name if name in VERBS else "query"](), ProviderTimeout)
    time.sleep(bulkhead.HEARS_WITHIN_SECONDS)
    served(desk, runner)
    assert desk.hostile.opened == 2


@pytest.mark.usefixtures("hears_sooner")
def test_one_that_blocks_again_and_again_is_refused_at_once_until_it_comes_back(
    desk: Desk, runner: asyncio.Runner
) -> None:
    runner.run(desk.bind_outside(timeout_seconds=SOON))
    desk.hostile.does["query"] = desk.hostile.block
    for _ in range(bulkhead.MAX_LOST):
        failed(desk, runner, Query(WHOLE, "cat"), ProviderTimeout)
        time.sleep(bulkhead.HEARS_WITHIN_SECONDS)
    opened = desk.hostile.opened
    assert "calls that hang" in str(failed(desk, runner, Query(WHOLE, "cat"), ProviderUnavailable))
    assert desk.hostile.opened == opened == bulkhead.MAX_LOST
    desk.hostile.let_go()
    deadline = time.monotonic() + 30
    while True:
        try:
            served(desk, runner)
            break
        except ProviderUnavailable:
            assert time.monotonic() < deadline, "it came back, and is still refused"
            time.sleep(0.05)


def test_the_rest_goes_on_while_one_blocks(desk: Desk, runner: asyncio.Runner) -> None:
    """Our own store is bound under another key and is queried while the provider blocks its thread."""
    runner.run(desk.bind_outside(timeout_seconds=5))
    desk.hostile.does["query"] = desk.hostile.block

    async def both() -> tuple[Any, bool]:
        stuck = asyncio.create_task(desk.do(Query(WHOLE, "cat")))
        await asyncio.sleep(0)
        ours = await desk.do(Query(WHOLE, "cat", binding_key="default"))
        waited = not stuck.done()
        desk.hostile.let_go()
        with pytest.raises(ProviderMalformed):  # its late response is None
            await stuck
        return ours, waited

    ours, waited = runner.run(both())
    assert (ours.binding, ours.result.snippets, waited) == ("default", (), True)


def test_one_that_will_not_be_cancelled_is_left_behind(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside(timeout_seconds=0.1))

    async def deaf(*_: Any) -> None:
        while not desk.hostile._stuck.is_set():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    desk.hostile.does["query"] = deaf
    for _ in range(bulkhead.MAX_DEAF + 1):
        failed(desk, runner, Query(WHOLE, "cat"), ProviderTimeout)
    assert desk.hostile.opened == 2
    served(desk, runner)


@pytest.mark.parametrize("name", ["query", "capture", "forget", "open", "capabilities"])
@pytest.mark.parametrize(
    "error",
    [
        ForeignError(f"401 for Bearer {SECRET}"),
        RuntimeError(SECRET),
        StoreCorrupt(SECRET),
        AccessDenied(SECRET),
        SystemExit(SECRET),
        KeyboardInterrupt(SECRET),
        asyncio.CancelledError(SECRET),
        RecursionError(SECRET),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_it_raises_is_told_by_its_kind_alone(
    desk: Desk, runner: asyncio.Runner, caplog: pytest.LogCaptureFixture, name: str, error: BaseException
) -> None:
    runner.run(desk.bind_outside())
    verb = "explain" if name == "capabilities" else name if name in VERBS else "query"
    if name in VERBS:
        desk.hostile.does[name] = raising(error)
    else:
        desk.hostile.does[name] = _raiser(error)
    with caplog.at_level(logging.DEBUG):
        caught = failed(desk, runner, VERBS[verb](), ProviderError)
    assert SECRET not in caplog.text
    if not isinstance(error, asyncio.CancelledError):
        assert type(error).__name__ in str(caught)
    served(desk, runner)


def _raiser(error: BaseException) -> Callable[..., Any]:
    def verb(*_: Any) -> Any:
        raise error

    return verb


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ProviderUnavailable("it answered 503"), ProviderUnavailable),
        (ProviderMalformed("it answered HTML"), ProviderMalformed),
        (CapabilityUnavailable("not there"), CapabilityUnavailable),
        (NotFound("there is no such record"), NotFound),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_it_says_in_our_words_is_passed_on_bare_of_what_it_came_from(
    desk: Desk, runner: asyncio.Runner, error: HoldfastError, kind: type[HoldfastError]
) -> None:
    runner.run(desk.bind_outside())

    async def wrap(*_: Any) -> None:
        try:
            raise ForeignError(SECRET)
        except ForeignError as cause:
            raise error from cause

    desk.hostile.does["correct"] = wrap
    caught = failed(desk, runner, VERBS["correct"](), kind)
    said = str(error)
    if isinstance(error, ProviderError):
        said = f"the binding 'elsewhere' (hostile) cannot be used: {said}; check the provider and the binding's"
        said += " configuration: `holdfast provider check hostile --config … --connect` tests it"
    assert str(caught) == said
    assert (caught.__cause__, caught.__context__) == (None, None)


MALFORMED: dict[str, tuple[str, Callable[..., Any]]] = {
    "nothing": ("query", soon(None)),
    "a text": ("query", soon("garbage")),
    "a number": ("capture", soon(7)),
    "another kind of answer": ("query", soon(ListPage())),
    "snippets that are none": ("query", soon(ContextBundle((1, 2)))),  # type: ignore[arg-type]
    "a list of nothing": ("query", soon(ContextBundle(None))),  # type: ignore[arg-type]
    "a score that is no number": ("query", soon(ContextBundle((snippet(score=float("nan")),)))),
    "a score without end": ("query", soon(ContextBundle((snippet(score=float("inf")),)))),
    "a score in words": ("query", soon(ContextBundle((snippet(score="high"),)))),
    "thousands of snippets": ("query", soon(ContextBundle(tuple(snippet(f"r{at}") for at in range(5_000))))),
    "more than was asked for": ("list", soon(ListPage(tuple(snippet(f"r{at}") for at in range(51))))),
    "a cursor of megabytes": ("list", soon(ListPage((), "x" * 10_000_000))),
    "a cursor that is none": ("list", soon(ListPage((), 7))),  # type: ignore[arg-type]
    "a text of megabytes": ("query", soon(ContextBundle((snippet(words="x" * 10_000_000),)))),
    "bytes for a text": ("query", soon(ContextBundle((snippet(words=b"x"),)))),  # type: ignore[arg-type]
    "a text that is none": ("query", soon(ContextBundle((snippet(words="\ud800"),)))),
    "a text with a NUL": ("query", soon(ContextBundle((snippet(words="a\x00b"),)))),
    "metadata of megabytes": ("query", soon(ContextBundle((snippet(metadata={"x": "y" * 1_000_000}),)))),
    "metadata that is no JSON": ("query", soon(ContextBundle((snippet(metadata={"x": object()}),)))),
    "metadata that is no number": ("query", soon(ContextBundle((snippet(metadata={"x": float("nan")}),)))),
    "a source that is none": ("query", soon(ContextBundle((snippet(source="here"),)))),
    "a scope that is none": ("query", soon(ContextBundle((snippet(scope="here"),)))),
    "a moment without an offset": ("query", soon(ContextBundle((snippet(recorded_at="now"),)))),
    "handles of another provider": ("capture", soon(CaptureResult((handle(provider="local"),)))),
    "a handle that is none": ("capture", soon(CaptureResult(("r1",)))),  # type: ignore[arg-type]
    "a handle without an id": ("capture", soon(CaptureResult((handle(""),)))),
    "thousands of handles": ("capture", soon(CaptureResult(tuple(handle(f"r{at}") for at in range(5_000))))),
    "another record": ("get", soon(snippet("r2"))),
    "records that nobody named": ("forget", soon(ForgetResult((handle("r7"),)))),
    "a verb that is not async": ("query", lambda *_: ContextBundle()),
    "a profile of megabytes": ("query", soon(ContextBundle((), "x" * 10_000_000))),
}


@pytest.mark.parametrize("named", MALFORMED)
def test_an_answer_that_is_garbage_is_refused_as_a_whole(desk: Desk, runner: asyncio.Runner, named: str) -> None:
    runner.run(desk.bind_outside())
    name, answer = MALFORMED[named]
    desk.hostile.does[name] = answer
    error = failed(desk, runner, VERBS[name](), ProviderMalformed)
    assert len(str(error)) < 300
    served(desk, runner)


FOREIGN: dict[str, dict[str, Any]] = {
    "of another company, by its scope": {"scope": Scope(space=OTHER)},
    "of another company, by its source": {"source": SourceRef(SourceKind.ISSUE, OTHER, issue_id="i1")},
    "of another agent": {"scope": Scope(space=ACME, agent="spy")},
    "of another subject": {"scope": Scope(space=ACME, subject="eve")},
}


@pytest.mark.parametrize("named", FOREIGN)
def test_records_that_are_somebody_elses_are_dropped_and_reported(
    desk: Desk, runner: asyncio.Runner, named: str
) -> None:
    runner.run(desk.bind_outside())
    mine = snippet("mine", scope=Scope(space=ACME, agent="bot"), source=NOTE)
    foreign = snippet("foreign", **FOREIGN[named])
    desk.hostile.does |= {
        "query": soon(ContextBundle((foreign, mine, snippet("unsaid")))),
        "list": soon(ListPage((mine, foreign))),
        "get": soon(foreign),
    }
    with rows_of(desk, runner.run) as rows:
        found = runner.run(desk.do(Query(BOT, "cat"), AGENT))
        page = runner.run(desk.do(ListRecords(BOT), AGENT))
        with pytest.raises(NotFound):
            runner.run(desk.do(GetRecord(BOT, handle("foreign")), AGENT))
    assert ([each.handle.record_id for each in found.result.snippets], found.dropped) == (["mine", "unsaid"], 1)
    assert ([each.handle.record_id for each in page.result.items], page.dropped) == (["mine"], 1)
    assert [row.attribution and row.attribution.dropped for row in rows] == [1, 1, 1]
    assert "foreign" not in full_repr(rows)


def test_an_operator_of_the_whole_company_is_given_what_is_of_its_agents(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    ours = tuple(snippet(f"r{at}", scope=Scope(space=ACME, agent=f"a{at}")) for at in range(3))
    desk.hostile.does["list"] = soon(ListPage((*ours, snippet("foreign", scope=Scope(space=OTHER)))))
    page = runner.run(desk.do(ListRecords(WHOLE)))
    assert (page.result.items, page.dropped) == (ours, 1)


@pytest.mark.parametrize("told", [Capabilities(), None, "all of them"])
def test_a_capability_that_is_gone_when_it_is_asked_for_is_refused(
    desk: Desk, runner: asyncio.Runner, told: Any
) -> None:
    runner.run(desk.bind_outside())
    desk.hostile.does["capabilities"] = lambda: told
    assert "`elsewhere`" in str(failed(desk, runner, ReadProviderProfile(WHOLE), CapabilityUnavailable))
    assert not desk.hostile.asked


def test_a_provider_that_never_had_a_capability_is_not_asked(desk: Desk, runner: asyncio.Runner) -> None:
    desk.hostile.capabilities = Capabilities()
    runner.run(desk.bind_outside())
    for name in ("correct", "profile", "list_extraction_jobs", "retry_extraction_job", "explain"):
        failed(desk, runner, VERBS[name](), CapabilityUnavailable)
    assert not desk.hostile.opened


def test_usage_that_cannot_be_believed_costs_nothing_and_keeps_the_answer(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    wild = Usage("hostile", input_tokens=-1, cost_cents=Decimal("NaN"), currency="gold")
    desk.hostile.does["query"] = soon(ContextBundle((snippet(),), usage=(wild, "free")))  # type: ignore[arg-type]
    with rows_of(desk, runner.run) as rows:
        found = runner.run(desk.do(Query(WHOLE, "cat")))
    assert len(found.result.snippets) == 1
    (row,) = rows
    assert row.attribution is not None
    assert [(each.input_tokens, each.cost_cents) for each in row.attribution.usage] == [(0, None)]
    assert row.attribution.cost_events == ()


def test_one_that_dies_when_it_is_closed_keeps_nobody_from_closing(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    served(desk, runner)
    desk.hostile.does["close"] = _raiser(ForeignError(SECRET))
    runner.run(desk.engine.close())
    assert desk.hostile.closed == 1


def test_one_that_blocks_when_it_is_closed_keeps_nobody_from_closing(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    served(desk, runner)
    desk.hostile.does["close"] = desk.hostile.block
    runner.run(desk.engine.close())
    assert desk.hostile.closed == 1


def test_a_changed_configuration_opens_another_adapter_and_closes_the_old_one(
    desk: Desk, runner: asyncio.Runner
) -> None:
    runner.run(desk.bind_outside())
    served(desk, runner)
    served(desk, runner)
    assert desk.hostile.opened == 1
    runner.run(desk.do(UpdateBinding(WHOLE, "elsewhere", config={"colour": "red"})))
    served(desk, runner)
    assert desk.hostile.opened == 2
    runner.run(until(lambda: desk.hostile.closed == 1))


def test_what_it_leaves_behind_on_its_loop_is_not_told(
    desk: Desk, runner: asyncio.Runner, caplog: pytest.LogCaptureFixture
) -> None:
    runner.run(desk.bind_outside())

    async def leave(*_: Any) -> ContextBundle:
        asyncio.get_running_loop().call_soon(_raiser(ForeignError(SECRET)))
        await asyncio.sleep(0)
        return ContextBundle()

    desk.hostile.does["query"] = leave
    with caplog.at_level(logging.DEBUG):
        runner.run(desk.do(Query(WHOLE, "cat")))
        served(desk, runner)
    assert SECRET not in caplog.text
    assert "ForeignError" in caplog.text


def test_a_caller_that_does_not_want_to_wait_any_longer_leaves_a_row(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside(timeout_seconds=60))

    async def hang(*_: Any) -> None:
        await asyncio.sleep(60)

    async def cut_off() -> None:
        task = asyncio.create_task(desk.do(Query(WHOLE, "cat")))
        await until(lambda: bool(desk.hostile.asked))
        task.cancel()
        await task

    desk.hostile.does["query"] = hang
    with rows_of(desk, runner.run) as rows, pytest.raises(asyncio.CancelledError):
        runner.run(cut_off())
    assert [(row.outcome, row.error_code) for row in rows] == [(Outcome.UNKNOWN, "cancelled")]


def test_too_many_calls_at_once_are_refused_and_the_others_are_served(
    desk: Desk, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulkhead, "MAX_UNDER_WAY", 3)
    runner.run(desk.bind_outside(timeout_seconds=30))

    async def crowd() -> list[Any]:
        released: list[Any] = []

        async def wait(*_: Any) -> ContextBundle:
            mine = asyncio.get_running_loop().create_future()
            released.append((asyncio.get_running_loop(), mine))
            await mine
            return ContextBundle()

        desk.hostile.does["query"] = wait
        tasks = [asyncio.create_task(desk.do(Query(WHOLE, "cat"))) for _ in range(5)]
        await until(lambda: sum(task.done() for task in tasks) == 2 and len(released) == 3)
        for loop, future in released:
            loop.call_soon_threadsafe(future.set_result, None)
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers = runner.run(crowd())
    assert sorted(type(each).__name__ for each in answers) == ["ProviderResponse"] * 3 + ["ProviderUnavailable"] * 2


@pytest.mark.parametrize("raised", [ProviderUnavailable, ProviderMisconfigured, SecretUnavailable])
def test_what_a_provider_says_is_told_with_its_binding_and_kept_from_callers_of_a_service(
    desk: Desk, runner: asyncio.Runner, raised: type[HoldfastError]
) -> None:
    runner.run(desk.bind_outside())
    desk.hostile.does["query"] = raising(raised(f"GET https://me:{SECRET}@elsewhere failed"))
    with rows_of(desk, runner.run) as rows, pytest.raises(raised) as told:
        runner.run(desk.do(Query(BOT, "cat"), AGENT))
    assert str(told.value).startswith("the binding 'elsewhere' (hostile) cannot be used: GET ")
    assert told.value.public is not None
    assert told.value.public.startswith("the binding 'elsewhere' (hostile) cannot be used: ")
    assert SECRET not in told.value.public
    assert [row.id for row in rows] == [told.value.operation_id]
