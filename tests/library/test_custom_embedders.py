"""Embedders that people have: functions, and objects of other libraries, with real weights or the real package."""

from __future__ import annotations

import asyncio
import functools
import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings, FakeEmbeddings

import holdfast
from holdfast import CustomEmbedder
from holdfast.domain.jobs import JobKind, JobStatus
from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderError, EmbedderMisconfigured, EmbedderNotNamed, EmbedderUnavailable, InvalidInput
from holdfast.search.embedders.custom import open_custom
from holdfast.search.embedders.static import StaticEmbedder
from probes import jobs_of

WEIGHTS = StaticEmbedder()  # real vectors, fast
CAT, MARKETS = "Our cat sleeps on the sofa.", "Stock markets fell sharply."


def embed(texts: list[str]) -> list[list[float]]:
    assert isinstance(texts, list)
    return [[float(number) * 7 for number in row] for row in WEIGHTS.vectors(texts)]  # of any length


async def embed_later(texts: list[str]) -> list[list[float]]:
    await asyncio.sleep(0)
    return embed(texts)


class Tensor:
    """A tensor as torch has them: NumPy reads it only when it is detached and on the CPU."""

    def __init__(self, rows: FloatArray, *, ready: bool = False) -> None:
        self._rows, self._ready = rows, ready

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return Tensor(self._rows, ready=True)

    def __array__(self, dtype: Any = None, copy: Any = None) -> FloatArray:
        if not self._ready:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self._rows


class SentenceTransformer:
    """The interface of sentence-transformers, whose package needs PyTorch: a module, so it can be called, too."""

    def encode(
        self, inputs: str | list[str], prompt_name: str | None = None, *, convert_to_numpy: bool = True
    ) -> FloatArray:
        return WEIGHTS.vectors(inputs)

    def get_sentence_embedding_dimension(self) -> int:
        return WEIGHTS.dimensions

    def __call__(self, features: dict[str, Any]) -> dict[str, Any]:
        raise TypeError("forward() takes features of a tokenizer")


class NewSentenceTransformer(SentenceTransformer):
    """As from version 5 on: queries and documents may have prompts of their own."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def encode_query(self, inputs: list[str], **_: Any) -> FloatArray:
        self.queries += inputs
        return WEIGHTS.vectors(inputs)

    def encode_document(self, inputs: list[str], **_: Any) -> FloatArray:
        return WEIGHTS.vectors(inputs)


class Remote:
    async def embed(self, texts: list[str]) -> FloatArray:
        return WEIGHTS.vectors(texts)


class OfLangChain(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts)

    def embed_query(self, text: str) -> list[float]:
        return embed([text])[0]


SHAPES: dict[str, Any] = {
    "a function that returns lists": embed,
    "an asynchronous function": embed_later,
    "a lambda that returns a coroutine": lambda texts: embed_later(texts),
    "a partial function": functools.partial(embed),
    "a function that returns an array": lambda texts: WEIGHTS.vectors(texts),
    "an array of half precision": lambda texts: WEIGHTS.vectors(texts).astype(np.float16),
    "a list of arrays": lambda texts: list(WEIGHTS.vectors(texts)),
    "a tuple of tuples": lambda texts: tuple(map(tuple, embed(texts))),
    "a generator of arrays": lambda texts: (row for row in WEIGHTS.vectors(texts)),
    "a tensor": lambda texts: Tensor(WEIGHTS.vectors(texts)),
    "a list of tensors": lambda texts: [Tensor(row) for row in WEIGHTS.vectors(texts)],
    "an object with encode": SentenceTransformer(),
    "an object with encode_query": NewSentenceTransformer(),
    "a method": SentenceTransformer().encode,
    "an object with an asynchronous embed": Remote(),
    "LangChain": OfLangChain(),
    "with options": CustomEmbedder(embed, name="static/1", local=False),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_whatever_makes_vectors_is_an_embedder(shape: str, tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "memory.db", embedder=SHAPES[shape], work=False) as memory:
        memory.add([CAT, MARKETS], subject="ana")
        memory.flush(subject="ana")
        for query in ("A kitten is napping on the couch.", CAT):
            hits = memory.search(query, subject="ana", method="vector")
            assert hits[0].text == CAT
            assert memory.search(query, subject="ana")[0].text == CAT
        found = memory.stats()
        assert (found.pending_vectors, found.embedder.split(":")[2]) == (0, "256")
        assert memory.verify().ok


def test_a_real_model_behind_a_function_finds_what_it_finds_by_name(tmp_path: Path, minilm: Path) -> None:
    from holdfast.search.embedders.onnx import OnnxEmbedder

    model = OnnxEmbedder(minilm)
    scores = []
    for embedder in (f"onnx:{minilm}", model.vectors):
        with holdfast.open(tmp_path / f"{len(scores)}.db", embedder=embedder, work=False) as memory:
            memory.add([CAT, MARKETS, "A kitten is napping."], subject="ana")
            explained = memory.explain("kittens", subject="ana", method="vector")
            scores.append([(hit.text, hit.components[0].raw) for hit in explained.hits])
    assert [text for text, _ in scores[0]] == [text for text, _ in scores[1]]
    assert np.allclose([raw for _, raw in scores[0]], [raw for _, raw in scores[1]], atol=1e-3)


def test_the_embeddings_of_langchain_are_an_embedder(tmp_path: Path) -> None:
    for _ in range(2):
        with holdfast.open(tmp_path / "m.db", embedder=DeterministicFakeEmbedding(size=48), work=False) as memory:
            memory.add(CAT, subject="ana", conversation="c")
            hits = memory.search(CAT, subject="ana", method="vector")
            assert {hit.text for hit in hits} == {CAT}
            assert memory.stats().embedder.startswith("python:DeterministicFakeEmbedding:48:")
            assert not [job for job in jobs_of(memory) if job.kind is JobKind.REEMBED]


def test_vectors_that_are_random_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbedderMisconfigured, match="two different vectors for the same text"):
        holdfast.open(tmp_path / "memory.db", embedder=FakeEmbeddings(size=48))
    assert list(tmp_path.iterdir()) == []


# --- what is no embedder ----------------------------------------------------------------------------------------------


class Client:
    """As a client of openai looks."""

    class embeddings:  # noqa: N801
        @staticmethod
        def create(**_: Any) -> None: ...


class Incomplete:
    fingerprint, dimensions, local = "mine:1", 3, True

    def embed(self, texts: Sequence[str], purpose: str) -> None: ...


USELESS: dict[str, tuple[Any, str]] = {
    "a number": (7, "a function of a list of texts, an object with embed, .*; got int"),
    "a dictionary": ({}, "got dict"),
    "a class": (SentenceTransformer, "got the class SentenceTransformer; pass an instance"),
    "a client": (Client(), "got a client of an endpoint, Client; name the model instead, .*'openai:text-embedding"),
    "half an Embedder": (Incomplete(), "Incomplete is no Embedder: it has no close"),
}


@pytest.mark.parametrize("kind", USELESS)
def test_what_is_no_embedder_is_refused_with_what_is_expected(kind: str, tmp_path: Path) -> None:
    value, message = USELESS[kind]
    with pytest.raises(InvalidInput, match=message) as refused:
        holdfast.open(tmp_path / "memory.db", embedder=value)
    assert refused.value.field == "embedder"
    with pytest.raises(InvalidInput):
        CustomEmbedder(value)
    assert list(tmp_path.iterdir()) == []


def test_options_of_an_embedder_are_checked() -> None:
    for options, field in (({"name": ""}, "name"), ({"name": "a\nb"}, "name"), ({"local": "no"}, "local")):
        with pytest.raises(InvalidInput) as refused:
            CustomEmbedder(embed, **options)  # type: ignore[arg-type]
        assert refused.value.field == field


def test_an_embedder_whose_method_is_not_asynchronous_says_so(tmp_path: Path) -> None:
    class Blocking(Incomplete):
        async def close(self) -> None: ...

    with holdfast.open(tmp_path / "memory.db", embedder=Blocking(), work=False) as memory:
        with pytest.raises(EmbedderMisconfigured, match="mine:1: `embed` of an Embedder must be `async def`"):
            memory.add(CAT)


# --- vectors that are none --------------------------------------------------------------------------------------------

DIMENSIONS = 3


def good(count: int) -> list[list[float]]:
    return [[1.0, float(number), 2.0] for number in range(count)]


def steady(texts: list[str]) -> list[list[float]]:
    return [[1.0, float(len(text)), 2.0] for text in texts]


def replaced(rows: list[Any], place: int, row: Any) -> list[Any]:
    return [row if number == place % len(rows) else each for number, each in enumerate(rows)]


def fail(texts: list[str]) -> None:
    raise LookupError("no such model")


async def fail_later(texts: list[str]) -> None:
    fail(texts)


async def endless(texts: list[str]) -> Any:
    yield good(1)


def broken_generator(texts: list[str]) -> Iterator[list[float]]:
    yield good(1)[0]
    raise StopAsyncIteration


_BAD_NUMBERS = [float("nan"), float("inf"), -float("inf"), None, "1.0", 1j, [1.0], {}, 10**400, b"1"]
_BAD_ROWS: list[Any] = [None, 1.0, "vector", {}, [], [0.0] * 3, [True] * 3, np.zeros((3, 2)), {1.0, 2.0, 3.0}, object()]
_BAD_RESULTS: list[Any] = [None, 7, "vectors", b"", {}, {1, 2}, object(), [], np.zeros((2, 2, 2)), np.float32(1), True]
Call = Callable[[list[str]], Any]
_places = st.integers(0, 9)
# Functions of a list of texts that do not return a vector for each.
bad_calls: st.SearchStrategy[Call] = st.one_of(
    st.sampled_from([fail, fail_later, endless, broken_generator]),
    st.sampled_from(_BAD_RESULTS).map(lambda made: lambda texts: made),
    st.sampled_from([1, 2, 100, -1]).map(lambda more: lambda texts: good(len(texts) + more)),
    st.just(lambda texts: itertools.repeat([1.0, 2.0, 3.0])),
    st.just(lambda texts: good(1)[0]),
    st.just(lambda texts: np.array(good(1)[0])),
    st.just(lambda texts: [embed_later(texts) for _ in texts]),
    st.tuples(_places, st.sampled_from(_BAD_ROWS)).map(lambda bad: lambda texts: replaced(good(len(texts)), *bad)),
    st.tuples(_places, st.sampled_from(_BAD_NUMBERS), _places).map(
        lambda bad: lambda texts: replaced(good(len(texts)), bad[0], replaced([1.0, 2.0, 3.0], bad[2], bad[1]))
    ),
    st.sampled_from([0, 2, 4, 9]).map(lambda size: lambda texts: replaced(good(len(texts)), 1, [1.0] * size)),
)
other_dimensions: st.SearchStrategy[Call] = st.sampled_from([1, 2, 4, 9]).map(
    lambda size: lambda texts: np.ones((len(texts), size))
)


class Turning:
    """An embedder that works until the test replaces its function."""

    def __init__(self) -> None:
        self.call: Call = steady

    def embed(self, texts: list[str]) -> Any:
        return self.call(texts)


@pytest.fixture(scope="module")
def turning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Turning, holdfast.Memory]]:
    embedder = Turning()
    with holdfast.open(tmp_path_factory.mktemp("turning") / "m.db", embedder=embedder, work=False) as memory:
        yield embedder, memory


@settings(max_examples=150, deadline=None)
@given(bad=bad_calls | other_dimensions)
def test_wrong_vectors_are_explained_and_nothing_is_stored(
    bad: Callable[[list[str]], Any], turning: tuple[Turning, holdfast.Memory]
) -> None:
    embedder, memory = turning
    before = memory.stats()
    embedder.call = bad
    with pytest.raises(EmbedderError, match=r"^embedder: Turning (returned|raised) ") as failed:
        memory.add([CAT, MARKETS], subject="ana")
    assert failed.value.field == "embedder"
    assert CAT not in str(failed.value)
    embedder.call = steady
    assert (memory.stats().messages, memory.stats().jobs) == (before.messages, before.jobs)


@settings(max_examples=60, deadline=None)
@given(bad=bad_calls)
def test_an_embedder_of_wrong_vectors_is_refused_on_opening(
    bad: Callable[[list[str]], Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("refused")
    with pytest.raises(EmbedderError, match=r"^embedder: "):
        holdfast.open(folder / "memory.db", embedder=bad)
    assert list(folder.iterdir()) == []


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_failure_of_the_function_is_named_with_its_cause_and_quotes_no_text(
    turning: tuple[Turning, holdfast.Memory],
) -> None:
    embedder, memory = turning

    def quoting(texts: list[str]) -> None:
        raise KeyError(texts[0])

    embedder.call = steady
    memory.add(CAT, subject="bo")
    embedder.call = quoting
    with pytest.raises(EmbedderUnavailable) as failed:
        memory.add("My password is swordfish.", subject="bo")
    assert str(failed.value) == "embedder: Turning raised KeyError"
    assert isinstance(failed.value.__cause__, KeyError)
    assert [hit.text for hit in memory.search("cat", subject="bo")] == [CAT], "found by its words"
    assert "words only" in memory.explain("cat", subject="bo").query["embedder"]
    with pytest.raises(EmbedderUnavailable):
        memory.search("cat", subject="bo", method="vector")


def test_an_asynchronous_embedder_that_fails_loses_nothing(tmp_path: Path) -> None:
    up = False

    async def distant(texts: list[str]) -> list[list[float]]:
        if CAT in texts and not up:
            raise ConnectionError(CAT)
        return embed(texts)

    with holdfast.open(tmp_path / "memory.db", embedder=distant, work=False) as memory:
        memory.add(CAT, subject="ana")
        memory.drain()
        job = min(jobs_of(memory), key=lambda job: job.attempt)
        assert (job.status, job.error) == (
            JobStatus.FAILED,
            "embedder_unavailable: embedder: test_custom_embedders.distant raised ConnectionError",
        )
        assert [hit.text for hit in memory.search("cat", subject="ana")] == [CAT]
        up = True
        memory.flush(subject="ana")
        assert memory.stats().pending_vectors == 0


# --- where it runs ----------------------------------------------------------------------------------------------------


def test_a_function_is_called_in_one_thread_one_call_at_a_time(tmp_path: Path) -> None:
    threads, inside, most = set(), 0, 0

    def slow(texts: list[str]) -> list[list[float]]:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        threads.add(threading.current_thread())
        made = embed(texts)
        inside -= 1
        return made

    with holdfast.open(tmp_path / "memory.db", embedder=slow) as memory:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: memory.add(f"Number {number}.", subject=f"s{number}"), range(40)))
        assert memory.stats().messages == 40
    assert (len(threads), most) == (1, 1)
    assert threads.isdisjoint({threading.main_thread()})


def test_a_coroutine_runs_on_the_loop_of_the_memory(tmp_path: Path) -> None:
    loops = set()

    async def watching(texts: list[str]) -> list[list[float]]:
        loops.add(asyncio.get_running_loop())
        return embed(texts)

    async def use() -> asyncio.AbstractEventLoop:
        async with holdfast.open_async(tmp_path / "memory.db", embedder=watching) as memory:
            await asyncio.gather(*(memory.add(CAT, subject=f"s{number}") for number in range(5)))
            await memory.flush()
            await memory.search("kitten", subject="s1")
        return asyncio.get_running_loop()

    assert {asyncio.run(use())} == loops
    loops.clear()
    with holdfast.open(tmp_path / "memory.db", embedder=watching) as memory:
        memory.search("kitten", subject="s1")
    assert len(loops) == 1


def test_many_texts_are_embedded_in_batches(tmp_path: Path) -> None:
    sizes = []

    def counting(texts: list[str]) -> list[list[float]]:
        sizes.append(len(texts))
        return embed(texts)

    with holdfast.open(tmp_path / "memory.db", embedder=counting, work=False) as memory:
        memory.add([f"Number {number}." for number in range(200)], subject="ana")
    assert sizes == [4, 64, 64, 64, 8]


def test_add_waits_for_a_function_and_not_for_a_coroutine_unless_it_is_said(tmp_path: Path) -> None:
    for number, (embedder, waits) in enumerate(
        [
            (embed, True),
            (embed_later, False),
            (CustomEmbedder(embed, local=False), False),
            (CustomEmbedder(embed_later, local=True), True),
        ]
    ):
        with holdfast.open(tmp_path / f"{number}.db", embedder=embedder, work=False) as memory:
            memory.add(CAT)
            assert (memory.stats().pending_vectors == 0) is waits


# --- which model made the vectors -------------------------------------------------------------------------------------


def fingerprint(embedder: Any) -> str:
    async def find() -> str:
        opened = await open_custom(embedder)
        await opened.close()
        return opened.fingerprint

    return asyncio.run(find())


def continued(path: Path, embedder: Any) -> bool:
    """True if a store goes on with its vectors, and embeds nothing again."""
    with holdfast.open(path, embedder=embedder, work=False) as memory:
        return not any(job.kind is JobKind.REEMBED for job in jobs_of(memory))


def noisy(texts: list[str]) -> FloatArray:
    """The same model on another machine, in half precision."""
    chance = np.random.default_rng(1)
    rows = WEIGHTS.vectors(texts)
    return (rows + chance.normal(0, 1e-4, rows.shape)).astype(np.float16)


def turned(texts: list[str]) -> FloatArray:
    """Another model, of as many dimensions."""
    return np.roll(WEIGHTS.vectors(texts), 1, axis=1)


def nearly(texts: list[str]) -> FloatArray:
    """The model after further training: the cosine of its vectors with the former ones is 0.98."""
    rows = WEIGHTS.vectors(texts)
    return rows + 0.2 * np.roll(rows, 1, axis=1)


def test_vectors_of_another_model_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with holdfast.open(path, embedder=embed, work=False) as memory:
        memory.add([CAT, MARKETS])
        made_by = memory.stats().embedder
    for same in (embed, embed_later, noisy, lambda texts: WEIGHTS.vectors(texts), SentenceTransformer()):
        renamed = CustomEmbedder(same) if same is not noisy else _called_embed(noisy)
        assert continued(path, renamed)
        with holdfast.open(path, embedder=renamed, work=False) as memory:
            assert memory.stats().embedder == made_by
            assert memory.search(CAT, method="vector")[0].text == CAT
    for number, other in enumerate((turned, nearly, _called_embed(nearly), CustomEmbedder(embed, name="mine"))):
        with holdfast.open(path, embedder=embed, work=False) as memory:
            memory.rebuild()
            memory.drain()
        copied = tmp_path / f"{number}.db"
        holdfast.copy(path, copied)
        assert not continued(copied, other)


def _called_embed(call: Call) -> Call:
    @functools.wraps(embed)
    def renamed(texts: list[str]) -> Any:
        return call(texts)

    return renamed


def test_a_name_of_your_own_decides_together_with_the_vectors(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with holdfast.open(path, embedder=CustomEmbedder(embed, name="acme:v1"), work=False) as memory:
        memory.add(CAT)
        assert memory.stats().embedder.startswith("custom:acme:v1:256:")
    assert continued(path, CustomEmbedder(noisy, name="acme:v1"))
    for other in (CustomEmbedder(turned, name="acme:v1"), CustomEmbedder(embed, name="acme:v2"), embed):
        copied = tmp_path / "copied.db"
        holdfast.copy(path, copied, replace=True)
        assert not continued(copied, other)


def test_the_next_process_continues_with_the_vectors_of_this_one(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import holdfast, sys\n"
        "from holdfast.search.embedders.static import StaticEmbedder\n"
        "model = StaticEmbedder()\n"
        "with holdfast.open('m.db', embedder=lambda texts: model.vectors(texts), work=False) as memory:\n"
        "    memory.add('The cat sleeps.', subject='ana')\n"
        "    hits = memory.search('cat', method='vector', subject='ana')\n"
        "    print(memory.stats().embedder, memory.drain(), len(hits))\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, *options, str(script)], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.split()
        for options in ([], ["-X", "int_max_str_digits=0", "-R"])
    ]
    assert runs[0][:2] == [runs[1][0], "0"]
    assert runs[0][0].startswith("python:lambda:256:")
    assert runs[1][1:] == ["0", "2"]


def test_a_store_opened_without_its_embedder_says_where_it_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with holdfast.open(path, embedder=CustomEmbedder(embed, name="acme"), work=False) as memory:
        memory.add(CAT, subject="ana")
    with pytest.raises(EmbedderNotNamed, match=r"embedded by acme of a Python program; .*embedder= of holdfast\.open"):
        holdfast.open(path)
    with holdfast.open(path, work=False) as memory:
        assert memory.search("cat", subject="ana", method="keyword")[0].text == CAT
        with pytest.raises(EmbedderNotNamed, match=r"by words \(method keyword\)"):
            memory.search("cat", subject="ana")
