"""Slow, remote, failing or replaced embedders: words are found at once, meaning follows, nothing is lost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast
from holdfast import Memory
from holdfast.domain.jobs import MAX_ATTEMPTS, JobKind, JobStatus
from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderMisconfigured, EmbedderNotNamed, EmbedderUnavailable, NotFound, StoreClosed
from holdfast.ports import Purpose
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.settings import Settings
from probes import SteppingClock, jobs_of


class Remote:
    """A remote embedder that the test can disconnect, slow down and inspect. It knows one synonym."""

    def __init__(self, *, dimensions: int = 48, model: str = "m1", local: bool = False) -> None:
        self._words = FakeEmbedder(dimensions)
        self.fingerprint = f"remote:{model}:{dimensions}"
        self.dimensions = dimensions
        self.local = local
        self.up = True
        self.open = threading.Event()
        self.open.set()
        self.asked = threading.Event()
        self.embedded: list[str] = []
        self.closed = False

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        self.asked.set()
        await asyncio.to_thread(self.open.wait, 10)
        if not self.up:
            raise EmbedderUnavailable("the model did not answer; try again")
        if purpose is Purpose.DOCUMENT:
            self.embedded += texts
        return self._words.vectors([text.replace("puppy", "dog") for text in texts])

    async def close(self) -> None:
        self.closed = True


def until(true: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for background work, with a timeout."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "the background work was not done in time"
        time.sleep(0.01)


@pytest.fixture
def remote() -> Remote:
    return Remote()


@pytest.fixture
def distant(tmp_path: Path, remote: Remote, clock: SteppingClock) -> Iterator[Memory]:
    with holdfast.open(tmp_path / "distant.db", embedder=remote, work=False, clock=clock) as memory:
        yield memory


def found_by_meaning(memory: Memory) -> bool:
    return any("puppy" in hit.text for hit in memory.search("dog", top_k=1))


@pytest.mark.parametrize(
    "url", ["notaurl", "ftp://127.0.0.1", "http://", "http://127.0.0.1:port", "127.0.0.1:11434/v1"]
)
def test_an_endpoint_that_is_no_address_is_refused_on_opening(tmp_path: Path, url: str) -> None:
    """It would never answer, so searches would use words alone for ever."""
    with pytest.raises(EmbedderMisconfigured, match="HOLDFAST_EMBEDDER_URL is not the URL of a server; write it like"):
        holdfast.open(tmp_path / "memory.db", embedder="openai:m", settings=Settings(embedder_url=url))


def test_with_a_remote_embedder_words_are_found_on_return_and_meaning_after_flush(
    distant: Memory, remote: Remote
) -> None:
    added = distant.add(["A puppy came.", "The train was late."], subject="ana")
    assert remote.embedded == []
    assert distant.search("puppy")[0].id == added.message_ids[0]
    assert not found_by_meaning(distant)
    assert distant.stats().pending_vectors == 2
    distant.flush(subject="ana")
    assert found_by_meaning(distant)
    assert distant.stats().pending_vectors == 0


def test_what_a_remote_embedder_owes_is_a_job_that_anyone_can_see(distant: Memory) -> None:
    added = distant.add("A puppy came.")
    (job,) = jobs_of(distant)
    assert (job.id, job.kind, job.status) == (added.jobs[0], JobKind.INDEX, JobStatus.QUEUED)
    assert distant.stats().jobs == {"queued": 1}
    assert distant.drain() == 1
    assert distant.stats().jobs == {"succeeded": 1}
    assert found_by_meaning(distant)


def test_memories_owe_their_vectors_too(distant: Memory) -> None:
    made = distant.remember("A puppy came.")
    distant.correct(made.id, "A puppy came and stayed.")
    assert distant.stats().pending_vectors > 0
    distant.drain()
    assert distant.stats().pending_vectors == 0
    assert found_by_meaning(distant)


def test_while_the_model_is_down_writes_and_searches_by_words_go_on(distant: Memory, remote: Remote) -> None:
    remote.up = False
    distant.add("A puppy came.", subject="ana")
    assert [hit.text for hit in distant.search("puppy")] == ["A puppy came."]
    assert "words only" in distant.explain("puppy").query["embedder"]
    with pytest.raises(EmbedderUnavailable):
        distant.flush(subject="ana")
    assert distant.stats().messages == 1
    remote.up = True
    distant.flush(subject="ana")
    assert found_by_meaning(distant)


def test_a_failed_job_is_tried_again_later_and_its_failures_stay_visible(
    distant: Memory, remote: Remote, clock: SteppingClock
) -> None:
    remote.up = False
    distant.add("A puppy came.")
    assert distant.drain() == 1
    assert distant.drain() == 0, "the next attempt is not due yet"
    clock.advance(minutes=1)
    assert distant.drain() == 1
    remote.up = True
    clock.advance(minutes=1)
    assert distant.drain() == 1
    attempts = sorted(jobs_of(distant), key=lambda job: job.attempt)
    assert [(job.attempt, job.status) for job in attempts] == [(1, "failed"), (2, "failed"), (3, "succeeded")]
    assert "embedder_unavailable" in (attempts[0].error or "")
    assert found_by_meaning(distant)


def test_a_job_that_always_fails_is_given_up_and_stays_failed(
    distant: Memory, remote: Remote, clock: SteppingClock
) -> None:
    remote.up = False
    distant.add("A puppy came.", subject="ana")
    for _ in range(MAX_ATTEMPTS + 2):
        distant.drain()
        clock.advance(hours=1)
    assert distant.stats().jobs == {"failed": MAX_ATTEMPTS}
    assert distant.stats().pending_vectors == 1
    remote.up = True
    distant.flush(subject="ana")
    assert distant.stats().pending_vectors == 0


def test_the_worker_does_what_is_owed_by_itself(tmp_path: Path, remote: Remote) -> None:
    with holdfast.open(tmp_path / "m.db", embedder=remote) as memory:
        memory.add("A puppy came.")
        until(lambda: memory.stats().pending_vectors == 0)
        assert found_by_meaning(memory)
    assert remote.closed


def test_work_that_a_closed_memory_left_is_done_by_the_next(tmp_path: Path, remote: Remote) -> None:
    with holdfast.open(tmp_path / "m.db", embedder=remote, work=False) as memory:
        memory.add("A puppy came.")
    with holdfast.open(tmp_path / "m.db", embedder=Remote()) as memory:
        until(lambda: memory.stats().pending_vectors == 0)
        assert found_by_meaning(memory)


def test_closing_in_the_middle_of_work_gives_the_work_back(tmp_path: Path, remote: Remote) -> None:
    path = tmp_path / "m.db"
    with holdfast.open(path, embedder=remote) as memory:
        remote.open.clear()
        memory.add("A puppy came.")
        until(lambda: memory.stats().jobs.get("running") == 1)
    with holdfast.open(path, embedder=Remote()) as memory:
        until(lambda: memory.stats().pending_vectors == 0)
        assert memory.verify().ok


def test_what_is_forgotten_while_it_is_being_learned_from_is_not_learned(tmp_path: Path) -> None:
    slow = Remote(local=True)
    with holdfast.open(tmp_path / "m.db", embedder=slow, work=False) as memory:
        said = str(memory.add("I live in Lisbon.", subject="ana").message_ids[0])
        memory.flush(subject="ana")
        slow.open.clear()
        slow.asked.clear()
        with ThreadPoolExecutor(1) as thread:
            learning = thread.submit(memory.drain)
            assert slow.asked.wait(10), "the fact was not embedded"
            memory.forget(said)
            slow.open.set()
            learning.result(timeout=10)
        assert memory.list().items == ()
        assert {job.status for job in jobs_of(memory)} == {JobStatus.SUCCEEDED}


def test_a_search_that_waits_for_its_model_gets_an_answer_when_the_memory_is_closed(tmp_path: Path) -> None:
    slow = Remote()
    memory = holdfast.open(tmp_path / "m.db", embedder=slow, work=False)
    memory.add("A puppy came.")
    slow.open.clear()
    outcomes: list[object] = []

    def search() -> None:
        try:
            outcomes.append(memory.search("dog"))
        except StoreClosed as error:
            outcomes.append(error)

    # Daemon threads: if they hang, the test fails instead of hanging with them.
    searching = threading.Thread(target=search, daemon=True)
    searching.start()
    assert slow.asked.wait(10), "the query was not embedded"
    closing = threading.Thread(target=memory.close, daemon=True)
    closing.start()
    until(lambda: memory._portal._closed)
    slow.open.set()
    for thread in (closing, searching):
        thread.join(timeout=10)
    assert [type(outcome) for outcome in outcomes] == [StoreClosed]


# --- replacing the embedder -----------------------------------------------------------------------------------------


def test_another_embedder_embeds_everything_anew_while_search_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    texts = [f"The cat sat on mat number {number}." for number in range(600)]
    with holdfast.open(path, embedder="fake") as memory:
        memory.add([*texts, "A puppy came."])
    slow = Remote(local=True)
    slow.open.clear()
    with holdfast.open(path, embedder=slow) as memory:
        until(lambda: any(job.kind is JobKind.REEMBED and job.status == "running" for job in jobs_of(memory)))
        assert memory.stats().pending_vectors == 601
        slow.open.set()
        assert memory.search("mat number 7")[0].text == "The cat sat on mat number 7."
        until(lambda: memory.stats().pending_vectors == 0)
        assert found_by_meaning(memory)
        until(lambda: all(job.status == "succeeded" for job in jobs_of(memory)))
        (job,) = [job for job in jobs_of(memory) if job.kind is JobKind.REEMBED]
        assert (job.done, job.total) == (601, 601)
        assert memory.verify().ok
    assert sorted(slow.embedded) == sorted([*texts, "A puppy came."])
    with holdfast.open(path, embedder=Remote(local=True), work=False) as memory:
        assert memory.drain() == 0, "the change is noted; nothing is made twice"


def embedded_by_choice(path: Path) -> None:
    with holdfast.open(path, embedder=Remote(local=True), work=False) as memory:
        memory.add(["A puppy came.", "The train was late."], subject="ana")


def test_an_embedder_that_nobody_named_replaces_no_vectors_that_somebody_chose(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    embedded_by_choice(path)
    with pytest.raises(EmbedderNotNamed, match=r"remote:m1:48.*HOLDFAST_EMBEDDER.*name static"):
        holdfast.open(path)
    again = Remote(local=True)
    with holdfast.open(path, embedder=again) as memory:
        assert found_by_meaning(memory)
        assert jobs_of(memory) == []
    assert again.embedded == []


def test_without_an_embedder_all_works_that_needs_no_vectors_and_what_is_added_waits_for_them(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    embedded_by_choice(path)
    with holdfast.open(path, work=False) as memory:
        memory.add("Another puppy, called Rex.", subject="ana")
        assert len(memory.list(subject="ana").items) == 3
        assert memory.search("Rex", subject="ana", method="keyword")[0].text == "Another puppy, called Rex."
        for needs_vectors in (memory.search, memory.recall):
            with pytest.raises(EmbedderNotNamed):
                needs_vectors("dog", subject="ana")
        with pytest.raises(EmbedderNotNamed):
            memory.flush(subject="ana")
        with pytest.raises(EmbedderNotNamed):
            memory.rebuild()
        assert (memory.stats().pending_vectors, memory.stats().stale_vectors) == (1, 0)
        assert not [job for job in jobs_of(memory) if job.kind is JobKind.REEMBED]
        memory.drain()
        assert [job.status for job in jobs_of(memory) if job.kind is JobKind.INDEX] == [JobStatus.QUEUED]
        forgotten = memory.list(subject="ana").items[-1].id
        memory.forget(forgotten)
        with pytest.raises(NotFound):
            memory.get(forgotten)
    chosen = Remote(local=True)
    with holdfast.open(path, embedder=chosen, work=False) as memory:
        memory.drain()
        assert memory.stats().pending_vectors == 0
    assert chosen.embedded == ["Another puppy, called Rex."]


def test_what_waits_to_be_made_anew_is_told_from_what_has_no_vector(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    embedded_by_choice(path)

    class Down(Remote):
        async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
            if purpose is Purpose.DOCUMENT:
                raise EmbedderUnavailable("gone")
            return await super().embed(texts, purpose)

    with holdfast.open(path, embedder=Down(), work=False) as memory:
        memory.add("Another puppy, called Rex.", subject="ana")
        rebuilt = memory.rebuild()
        assert (rebuilt.records, rebuilt.pending_vectors) == (3, 3)
        found = memory.stats()
        assert (found.pending_vectors, found.stale_vectors, found.without_vectors) == (3, 2, 1)
        assert found_by_meaning(memory)
    with holdfast.open(path, embedder=Remote(local=True), work=False) as memory:
        memory.flush(subject="ana")
        assert (memory.stats().pending_vectors, memory.stats().stale_vectors) == (0, 0)


@pytest.mark.parametrize("name_it", [{"embedder": "static"}, {"settings": Settings(embedder="static")}])
def test_naming_the_default_is_choosing_it(tmp_path: Path, name_it: dict[str, Any]) -> None:
    path = tmp_path / "m.db"
    embedded_by_choice(path)
    with holdfast.open(path, work=False, **name_it) as memory:
        memory.drain()
        assert memory.stats().pending_vectors == 0
        assert memory.stats().embedder.startswith("static:")
    with holdfast.open(path) as memory:
        assert memory.search("the train", subject="ana")[0].text == "The train was late."


def test_embedding_anew_goes_on_where_it_stopped(tmp_path: Path, clock: SteppingClock) -> None:
    path = tmp_path / "m.db"
    with holdfast.open(path, embedder="fake", work=False, clock=clock) as memory:
        memory.add([f"The cat sat on mat number {number}." for number in range(600)])

    class Breaking(Remote):
        async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
            if len(self.embedded) >= 256:
                raise EmbedderUnavailable("gone after the first batch")
            return await super().embed(texts, purpose)

    def progress(memory: Memory) -> set[tuple[int, int]]:
        return {(job.done, job.total) for job in jobs_of(memory) if job.kind is JobKind.REEMBED}

    breaking, again = Breaking(local=True), Breaking(local=True)
    with holdfast.open(path, embedder=breaking, work=False, clock=clock) as memory:
        memory.drain()
        assert memory.stats().pending_vectors == 600 - 256
        assert (256, 600) in progress(memory)
    clock.advance(minutes=5)
    with holdfast.open(path, embedder=again, work=False, clock=clock) as memory:
        memory.drain()
        assert memory.stats().pending_vectors == 600 - 512
        assert (512, 600) in progress(memory)
    clock.advance(minutes=5)
    third = Remote(local=True)
    with holdfast.open(path, embedder=third, work=False, clock=clock) as memory:
        memory.drain()
        assert memory.stats().pending_vectors == 0
        assert (600, 600) in progress(memory)
        assert memory.verify().ok
    assert len(third.embedded) == 600 - 512
    assert not set(third.embedded) & {*breaking.embedded, *again.embedded}


@pytest.mark.parametrize(
    "answer",
    [
        np.zeros((3, 48), np.float32),
        np.zeros((1, 47), np.float32),
        np.zeros(48, np.float32),
        np.full((1, 48), np.nan, np.float32),
        [[0.0] * 48],
        None,
    ],
)
def test_an_embedder_that_answers_nonsense_is_refused_and_nothing_is_stored(tmp_path: Path, answer: object) -> None:
    class Confused(Remote):
        async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
            return answer  # type: ignore[return-value]

    with holdfast.open(tmp_path / "m.db", embedder=Confused(local=True), work=False) as memory:
        with pytest.raises(EmbedderMisconfigured, match="finite numbers"):
            memory.add("A puppy came.")
        with pytest.raises(EmbedderMisconfigured, match="finite numbers"):
            memory.search("dog")
        assert memory.stats().messages == 0
