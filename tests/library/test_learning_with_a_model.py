"""`flush` with a model, a real server on loopback: what it is sent, what is learned, and what its faults cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

import holdfast
from holdfast.domain.access import storewide_grant
from holdfast.domain.events import Event, EventKind
from holdfast.domain.jobs import JobKind, JobStatus
from holdfast.runtime import model_extraction
from holdfast.settings import Settings
from model_server import INPUT_TOKENS, ModelServer, Shown, fact, model_server
from probes import SteppingClock, jobs_of, store_of

TALK: dict[str, Any] = {"subject": "ana", "conversation": "c"}


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@contextmanager
def opened(place: str, url: str, **options: Any) -> Iterator[holdfast.Memory]:
    """A memory with the model of this address, without a worker."""
    clock = options.pop("clock", None)
    settings = Settings(model="small", model_url=f"{url}/v1", **options)
    with holdfast.open(place, embedder="fake", work=False, settings=settings, clock=clock) as memory:
        yield memory


def learn(memory: holdfast.Memory, *texts: Any, conversation: str = "c") -> None:
    memory.add(list(texts), subject="ana", conversation=conversation)
    memory.flush(subject="ana", conversation=conversation)
    memory.drain()


def memories(memory: holdfast.Memory) -> list[holdfast.MemoryRecord]:
    found = memory.list(kind="memory", subject="ana", limit=100).items
    return [each for each in found if isinstance(each, holdfast.MemoryRecord)]


def texts(memory: holdfast.Memory) -> set[str]:
    return {each.text for each in memories(memory)}


def events(memory: holdfast.Memory) -> list[Event]:
    """The events of the jobs that asked a model, newest first."""
    store, kinds = store_of(memory._behind), frozenset({EventKind.MAINTENANCE})
    return list(memory._portal.run(store.read(storewide_grant(), lambda reader: reader.events.page(1_000, kinds))))


def extractions(memory: holdfast.Memory) -> list[Any]:
    return [job for job in jobs_of(memory) if job.kind is JobKind.EXTRACT]


# --- what is learned --------------------------------------------------------------------------------------------------


def test_what_a_model_proposes_of_flushed_messages_is_learned_once(empty_store: str, model: ModelServer) -> None:
    with opened(empty_store, model.url) as memory:
        learn(memory, "The fence is green.", {"role": "assistant", "text": "Lovely."})
        (learned,) = memories(memory)
        assert (learned.text, learned.author, learned.trust) == (
            "The fence is green.",
            "curator:small",
            holdfast.Trust.MODEST,
        )
        assert [each.text for each in learned.evidence] == ["The fence is green."]
        (event,) = events(memory)
        assert {"requests": 1, "input_tokens": INPUT_TOKENS, "messages_read": 2}.items() <= event.details.items()
        # The same conversation again: nothing is sealed, and nobody is asked.
        memory.flush(**TALK)
        memory.drain()
        assert (len(model.asked), memories(memory)) == (1, [learned])
        memory.add(["The gate is red."], **TALK)
        memory.flush(**TALK)
        memory.drain()
        assert [said["text"] for said in model.asked[1].shown["messages"]] == ["The gate is red."]


def test_a_model_is_shown_what_is_known_and_names_it_by_its_number(empty_store: str, model: ModelServer) -> None:
    def move(shown: Shown) -> list[dict[str, Any]]:
        text = shown["messages"][0]["text"]
        if not shown["known"]:
            return [fact("Ana lives in Porto.", 1)]
        (porto,) = shown["known"]
        assert (porto["text"], text) == ("Ana lives in Porto.", "I live in Lisbon now.")
        return [fact("Ana lives in Lisbon.", 1, relation="update", known=porto["known"], since="2026-02-01")]

    model.reply = move
    with opened(empty_store, model.url) as memory:
        learn(memory, {"text": "I live in Porto.", "timestamp": "2026-01-05T12:00Z"})
        learn(memory, {"text": "I live in Lisbon now.", "timestamp": "2026-02-10T12:00Z"}, conversation="d")
        valid = {each.text: each.validity for each in memories(memory)}
        moved_at = datetime(2026, 2, 1, tzinfo=UTC)
        assert valid["Ana lives in Porto."].until == moved_at
        assert valid["Ana lives in Lisbon."].since == moved_at
        assert "mem_" not in str([each.body for each in model.asked]), "our own ids are nobody's business"


@pytest.mark.parametrize(
    "invented",
    [
        {"messages": [9]},
        {"messages": []},
        {"text": "Ana owns a castle in Scotland."},
        {"text": "The fence is 4 metres high."},
    ],
)
def test_what_rests_on_nothing_that_was_said_is_not_learned(
    empty_store: str, model: ModelServer, invented: dict[str, Any]
) -> None:
    model.reply = lambda shown: [fact("The fence is green.", 1) | invented, fact("The gate is red.", 2)]
    with opened(empty_store, model.url) as memory:
        learn(memory, "The fence is green.", "The gate is red.")
        assert texts(memory) == {"The gate is red."}


def test_what_only_an_assistant_said_is_not_learned(empty_store: str, model: ModelServer) -> None:
    model.reply = lambda shown: [fact("Ana lives in Porto.", 1), fact("The gate is red.", 1, 2)]
    with opened(empty_store, model.url) as memory:
        learn(memory, {"role": "assistant", "text": "Ana lives in Porto. The gate is red."}, "The gate is red.")
        (learned,) = memories(memory)
        assert [each.text for each in learned.evidence] == ["The gate is red."]


@pytest.mark.parametrize(
    ("relation", "known", "dates"),
    [
        ("update", 7, {}),
        ("duplicate", None, {}),
        ("contradiction", "1", {}),
        ("confusion", 1, {}),
        (None, True, {}),
        ("new", 1, {"since": "soon", "until": "2026-13-45"}),
        ("new", 1, {"since": 5, "until": ["2026-01-01"]}),
        ("new", None, {"since": "2026-03-02", "until": "2026-03-01"}),
    ],
)
def test_invented_numbers_and_bad_dates_are_ignored(
    empty_store: str, model: ModelServer, relation: Any, known: Any, dates: dict[str, Any]
) -> None:
    with opened(empty_store, model.url) as memory:
        learn(memory, "The fence is green.")
        model.reply = lambda shown: [fact("The gate is red.", 1, relation=relation, known=known, **dates)]
        learn(memory, "The gate is red.", conversation="d")
        assert texts(memory) == {"The fence is green.", "The gate is red."}
        assert {(each.validity.since, each.validity.until) for each in memories(memory)} == {(None, None)}


def test_a_model_that_contradicts_itself_leaves_two_marked_memories(empty_store: str, model: ModelServer) -> None:
    model.reply = lambda shown: [fact("Ana lives in Porto.", 1), fact("Ana does not live in Porto.", 1)]
    with opened(empty_store, model.url) as memory:
        learn(memory, "I live in Porto. No, I do not live in Porto.")
        one, other = memories(memory)
        assert (one.contradicts, other.contradicts) == ((other.id,), (one.id,))


# --- limits -----------------------------------------------------------------------------------------------------------


def test_rules_learn_from_what_a_model_may_not_be_shown_for_its_number(empty_store: str, model: ModelServer) -> None:
    with opened(empty_store, model.url, model_messages=100) as memory:
        said = ["I live in Porto.", *(f"Fence {number} is green." for number in range(299))]
        memory.add(said, **TALK)
        memory.flush(**TALK)
        memory.drain()
        assert len(extractions(memory)) == 6
        assert model.texts
        assert set(model.texts) <= set(said[-100:]) | texts(memory)
        assert len(model.asked) == 2
        assert "ana lives in Porto." in {each.text for each in memories(memory)}
        counts = [(each.details["messages_read"], each.details["messages_left_to_rules"]) for each in events(memory)]
        assert sum(read for read, _ in counts) == 100
        assert sum(left for _, left in counts) == 200


def test_a_text_too_long_for_a_request_is_shown_in_pieces(empty_store: str, model: ModelServer) -> None:
    long = " ".join(f"Fence {number} is green." for number in range(1_500))
    model.reply = lambda shown: []
    with opened(empty_store, model.url) as memory:
        learn(memory, long, "The gate is red.")
        assert len(model.asked) == 2
        assert "".join(model.texts) == f"{long}The gate is red."
        (event,) = events(memory)
        assert (event.details["messages_read"], event.details["messages_left_to_rules"]) == (2, 0)


def test_a_job_asks_so_often_and_so_long_and_rules_learn_from_the_rest(
    empty_store: str, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_extraction, "MAX_REQUESTS", 2)
    filler = "x " * 8_000
    model.reply = lambda shown: []
    with opened(empty_store, model.url) as memory:
        learn(memory, "I live in Porto.", filler, filler, filler)
        assert len(model.asked) == 2
        assert texts(memory) == {"ana lives in Porto."}
    with opened(empty_store, model.url, model_seconds=1e-9) as memory:
        learn(memory, "My dog is called Rex.", filler, conversation="d")
        assert len(model.asked) == 2, "the time was over before the first request"
        assert "Rex" in str(texts(memory))


# --- faults -----------------------------------------------------------------------------------------------------------


def drain_late(memory: holdfast.Memory, clock: SteppingClock, rounds: int = 20) -> None:
    """Run all attempts at the jobs, however long their delays."""
    for _ in range(rounds):
        memory.drain()
        clock.advance(hours=1)


@pytest.mark.parametrize("answer", ["rubbish", "[]", '{"memories": 5}', "{" * 10_000])
def test_a_model_that_answers_garbage_is_asked_a_few_times_and_then_rules_learn(
    empty_store: str, clock: SteppingClock, answer: str
) -> None:
    with model_server(lambda shown: answer) as model, opened(empty_store, model.url, clock=clock) as memory:
        quick(memory)
        learn(memory, "I live in Porto.")
        drain_late(memory, clock)
        assert len(model.asked) == 9, "three attempts at the job, each with three requests"
        assert texts(memory) == {"ana lives in Porto."}
        failed = extractions(memory)
        assert [job.status for job in failed] == [JobStatus.FAILED] * 3
        assert "did not answer as asked" in failed[0].error
        assert "Rules learned from the messages instead" in failed[0].error
        assert {event.details["failure"] for event in events(memory)} == {"model_unavailable"}


@pytest.mark.parametrize(
    ("answer", "problem"), [(None, "it took too long"), (503, "answered 503"), (401, "HOLDFAST_MODEL_KEY")]
)
def test_a_model_that_never_answers_loses_nothing(
    empty_store: str, clock: SteppingClock, answer: Any, problem: str
) -> None:
    with model_server(lambda shown: answer) as model, opened(empty_store, model.url, clock=clock) as memory:
        quick(memory)
        learn(memory, "I live in Porto.", "The gate is red.")
        assert memories(memory) == []
        failed, queued = sorted(extractions(memory), key=lambda job: job.status)
        assert (failed.status, queued.status) == (JobStatus.FAILED, JobStatus.QUEUED)
        assert problem in failed.error
        # Once it answers, the same messages are learned from.
        model.reply = lambda shown: [fact("The gate is red.", 2)]
        model.released.set()
        drain_late(memory, clock, 2)
        assert texts(memory) == {"The gate is red."}


def quick(memory: holdfast.Memory) -> None:
    """Let the curator wait less: between its requests, and for an answer."""
    flush_model = store_and_core(memory).flush_model
    curator = flush_model.curator._curator
    curator._first_wait = 0.001
    curator._model._timeout_seconds = 0.3


def store_and_core(memory: holdfast.Memory) -> Any:
    return memory._behind._service._core


def test_what_is_forgotten_while_a_model_reads_it_is_not_learned(empty_store: str) -> None:
    stored: list[str] = []

    def forget(shown: Shown) -> list[dict[str, Any]]:
        with holdfast.open(empty_store, embedder="fake", work=False, settings=Settings()) as other:
            other.forget(stored[:1], subject="ana")
        return [fact("The fence is green.", 1), fact("The gate is red.", 2)]

    with model_server(forget) as model, opened(empty_store, model.url) as memory:
        stored += memory.add(["The fence is green.", "The gate is red."], **TALK).message_ids
        memory.flush(**TALK)
        memory.drain()
        assert texts(memory) == {"The gate is red."}


# --- the verbs that ask a model ---------------------------------------------------------------------------------------


def downgrade(place: str) -> None:
    """Make it a store from before `flush` asked a model."""
    with holdfast.open(place, embedder="fake", work=False) as memory:
        delete = "DELETE FROM meta WHERE key = 'model_verbs'"
        store = store_of(memory._behind)
        memory._portal.run(
            store.write(storewide_grant(), lambda transaction: transaction.maintenance._db.execute(delete))
        )


def asks(place: str, url: str, **options: Any) -> bool:
    with opened(place, url, **options) as memory:
        return store_and_core(memory).flush_model is not None


@pytest.mark.parametrize(
    ("verbs", "new", "old"),
    [
        (None, True, False),
        ("flush", True, True),
        ("maintain, flush", True, True),
        ("maintain", False, False),
        ("none", False, False),
    ],
)
def test_an_upgraded_store_asks_a_model_only_if_a_setting_says_so(
    empty_store: str, model: ModelServer, verbs: str | None, new: bool, old: bool
) -> None:
    options = {} if verbs is None else {"model_verbs": verbs}
    assert asks(empty_store, model.url, **options) is new
    assert asks(empty_store, model.url, **options) is new, "also when it is opened again"
    downgrade(empty_store)
    assert asks(empty_store, model.url, **options) is old


def test_without_leave_rules_learn_and_nothing_is_sent(empty_store: str, model: ModelServer) -> None:
    downgrade(empty_store)
    with opened(empty_store, model.url) as memory:
        learn(memory, "I live in Porto.")
        assert texts(memory) == {"ana lives in Porto."}
        assert (model.asked, events(memory)) == ([], [])


def test_a_copy_asks_a_model_if_its_source_does(empty_store: str, model: ModelServer, tmp_path: Any) -> None:
    with opened(empty_store, model.url):
        pass
    holdfast.copy(empty_store, tmp_path / "new.db")
    downgrade(empty_store)
    holdfast.copy(empty_store, tmp_path / "old.db")
    assert asks(str(tmp_path / "new.db"), model.url)
    assert not asks(str(tmp_path / "old.db"), model.url)
