"""The approximate indexes beside a SQLite file: verified before use, and free of forgotten content."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import holdfast
from holdfast import Memory
from holdfast.cli.doctor import run_checks
from holdfast.cli.options import StoreOptions
from holdfast.domain.access import LOCAL_OPERATOR, Action, authorize
from holdfast.domain.ranking import FloatArray
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import TranscriptState
from holdfast.ports import Purpose, VectorBlock
from holdfast.search import approximate_search
from holdfast.settings import Settings
from holdfast.stores.sqlite import SqliteStore, graphs
from holdfast.stores.sqlite.graphs import BadGraph, OpenGraph

SIZE = 300
DIMENSIONS = 32


class Scattered:
    """Gives each text a distinct vector, so that its bytes can be searched for."""

    fingerprint, dimensions, local = "scattered:1", DIMENSIONS, True

    def vector(self, text: str) -> FloatArray:
        made = np.random.default_rng(abs(hash_of(text))).standard_normal(DIMENSIONS).astype(np.float32)
        unit: FloatArray = made / np.linalg.norm(made)
        return unit

    async def embed(self, texts: list[str], purpose: Purpose) -> FloatArray:
        return np.stack([self.vector(text) for text in texts])

    async def close(self) -> None:
        return None


def hash_of(text: str) -> int:
    return int.from_bytes(text.encode()[-8:].rjust(8, b"\0"), "big")


EMBEDDER = Scattered()


def opened(path: Path, approximate_from: int = 200) -> AbstractContextManager[Memory]:
    settings = Settings(approximate_from=approximate_from)
    return holdfast.open(path, embedder=EMBEDDER, work=False, settings=settings)


def text(number: int) -> str:
    return f"note about thing {number:05d}"


def fill(memory: Memory, count: int = SIZE) -> list[str]:
    return [str(made) for made in memory.add([text(at) for at in range(count)], subject="ana").message_ids]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with opened(path) as memory:
        yield memory


@pytest.fixture(autouse=True)
def _also_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximate_search, "_FEW", 20)


def files(path: Path) -> list[Path]:
    return sorted(Path(f"{path}-nearest").glob("*"))


def graph_file(path: Path) -> Path:
    (found,) = [file for file in files(path) if file.suffix == ".usearch"]
    return found


def is_approximate(memory: Memory) -> bool:
    return any(way.approximate for way in memory.explain(text(7), subject="ana").ways)


def held(path: Path, of: str) -> bool:
    """True if any file of the store contains the vector of that text."""
    looked_for = EMBEDDER.vector(of).astype("<f2").tobytes()
    everything = [*files(path), *path.parent.glob(f"{path.name}*")]
    return any(looked_for in file.read_bytes() for file in everything if file.is_file())


# --- damaged files ----------------------------------------------------------------------------------------------------


def damage_missing(file: Path) -> None:
    file.unlink()


def damage_truncated(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 100)


def damage_graph(file: Path) -> None:
    size = file.stat().st_size
    with file.open("rb+") as target:
        target.seek(size - 400)
        target.write(b"\xff" * 64)


def damage_foreign(file: Path) -> None:
    file.write_bytes(random.Random(1).randbytes(file.stat().st_size))


def damage_numbers(file: Path) -> None:
    numbers = file.with_suffix(".numbers")
    numbers.write_bytes(bytes(reversed(numbers.read_bytes())))


@pytest.mark.parametrize(
    "damage", [damage_missing, damage_truncated, damage_graph, damage_foreign, damage_numbers], ids=lambda d: d.__name__
)
def test_a_file_that_is_not_what_was_written_is_not_used_and_made_anew(path: Path, damage: object) -> None:
    with opened(path) as memory:
        fill(memory)
        memory.drain()
        assert is_approximate(memory)
    damage(graph_file(path))  # type: ignore[operator]
    with opened(path) as memory:
        assert not is_approximate(memory)
        assert memory.search(text(7), subject="ana")[0].text == text(7)
        assert [finding.check for finding in memory.verify().findings] == ["approximate indexes"]
        memory.drain()
        assert is_approximate(memory)
        assert memory.verify().ok
        assert memory.search(text(7), subject="ana")[0].text == text(7)
    assert len(files(path)) == 2


def test_a_copy_of_the_file_alone_is_searched_exactly_until_its_index_is_made(path: Path, tmp_path: Path) -> None:
    with opened(path) as memory:
        fill(memory)
        memory.drain()
    other = tmp_path / "copy.db"
    other.write_bytes(path.read_bytes())
    with opened(other) as memory:
        assert not is_approximate(memory)
        assert memory.search(text(7), subject="ana")[0].text == text(7)
        memory.drain()
        assert is_approximate(memory)


def test_without_the_library_everything_is_exact_and_an_explanation_says_why(
    path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(memory)
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "usearch" else found(name, *more)
    )
    assert memory.drain() == 0
    (way,) = memory.explain("note", subject="ana").ways
    assert not way.approximate
    assert way.reason == "usearch is not installed; `holdfast doctor` says how to install it"
    advice = {each.name: each.advice for each in run_checks(StoreOptions(str(path), "fake"))}
    assert "[approximate]" in str(advice["large partitions"])


def test_a_memory_that_is_in_no_file_is_searched_exactly() -> None:
    with opened(Path(":memory:")) as memory:
        fill(memory)
        assert memory.drain() == 0
        (way,) = memory.explain("note", subject="ana").ways
        assert way.reason == "it is kept in memory"


# --- forgetting -------------------------------------------------------------------------------------------------------


def test_the_vectors_of_what_is_forgotten_are_in_no_file(path: Path) -> None:
    with opened(path) as memory:
        made = fill(memory)
        memory.drain()
        assert held(path, text(7))
        receipt = memory.forget(made[7], subject="ana")
        assert receipt.scrubbed
        assert not held(path, text(7))
        assert held(path, text(8))
        assert is_approximate(memory)
        assert made[7] not in [hit.id for hit in memory.search(text(7), subject="ana", top_k=50)]
        assert memory.verify().ok
    with opened(path) as memory:
        assert is_approximate(memory)
        assert memory.search(text(8), subject="ana")[0].text == text(8)


def test_the_vectors_of_deleted_content_are_in_no_file(path: Path) -> None:
    thread = Scope(subject="ana", conversation="home")

    async def delete() -> None:
        store = SqliteStore(str(path))
        grant = authorize(LOCAL_OPERATOR, Action.TRANSCRIPT_LIFECYCLE, thread)
        state, now = TranscriptState.RAW_DELETED, datetime.now(UTC)
        assert await store.write(grant, lambda t: t.transcripts.set_state(thread, [8], state, now)) == 1
        assert await store.scrub()
        await store.close()

    with opened(path) as memory:
        for number in range(SIZE):
            memory.add(text(number), subject="ana", conversation="home")
        memory.drain()
        assert held(path, text(7))
        asyncio.run(delete())
        assert not held(path, text(7))
        assert held(path, text(8))
        assert is_approximate(memory)
        assert text(7) not in [hit.text for hit in memory.search(text(7), subject="ana", top_k=50)]
        assert memory.verify().ok


def test_what_is_forgotten_while_an_index_is_built_is_not_in_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path) as memory, opened(path) as other:
        made = fill(memory)
        measured = graphs._measure_recall

        def forgetting(*given: object) -> float:
            other.forget(made[7], subject="ana")
            return measured(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(graphs, "_measure_recall", forgetting)
        memory.drain()
        assert is_approximate(memory)
        assert not held(path, text(7))


def test_what_is_forgotten_after_the_files_are_written_is_blanked_before_they_count(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as memory, opened(path) as other:
        made = fill(memory)
        written = graphs.sync_folder

        def forgetting(folder: Path) -> None:
            written(folder)
            monkeypatch.setattr("holdfast.stores.sqlite.nearest.GraphFolder.scrub", lambda *_: None)
            other.forget(made[7], subject="ana")
            monkeypatch.undo()

        monkeypatch.setattr(graphs, "sync_folder", forgetting)
        memory.drain()
        assert is_approximate(memory)
        assert not held(path, text(7))


def test_an_index_of_which_most_is_forgotten_is_given_up(path: Path) -> None:
    with opened(path) as memory:
        made = fill(memory)
        memory.drain()
        memory.forget(made[: SIZE * 2 // 3], subject="ana")
        assert not is_approximate(memory)
        assert files(path) == []
        assert memory.search(text(SIZE - 1), subject="ana")[0].text == text(SIZE - 1)


# --- several and dying processes --------------------------------------------------------------------------------------


def test_one_process_uses_what_another_has_built_and_sees_what_it_adds(path: Path) -> None:
    with opened(path) as memory, opened(path) as other:
        fill(memory)
        assert not is_approximate(other)
        memory.drain()
        assert is_approximate(other)
        memory.add("note about thing 99999", subject="ana", conversation="later")
        assert other.search("note about thing 99999", subject="ana")[0].text == "note about thing 99999"
        other.rebuild()
        assert is_approximate(memory)
        assert memory.search(text(9), subject="ana")[0].text == text(9)
    assert len(files(path)) == 2


_KILLED = """
import os, signal, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from holdfast import failpoints
import test_sqlite_nearest as tests
seen = []
def act(point):
    if point == {point!r} and tests.files(Path({path!r})):
        os.kill(os.getpid(), signal.SIGKILL)
with tests.opened(Path({path!r})) as memory:
    failpoints.arm(act)
    memory.drain()
"""


@pytest.mark.parametrize("point", ["job.finish.before", "job.finish.after", "commit.before", "commit.after"])
def test_a_worker_that_is_killed_leaves_no_half_index_in_use(path: Path, point: str) -> None:
    with opened(path) as memory:
        fill(memory)
    script = _KILLED.format(here=str(Path(__file__).parent), path=str(path), point=point)
    ended = subprocess.run([sys.executable, "-c", script], check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    with opened(path) as memory:
        assert is_approximate(memory) == (point == "commit.after")
        assert memory.search(text(7), subject="ana")[0].text == text(7)
        assert memory.verify().ok
    with opened(path) as memory:
        memory.forget(memory.search(text(7), subject="ana")[0].id, subject="ana")
        assert not held(path, text(7))
        assert len(files(path)) == (2 if point == "commit.after" else 0)


def test_the_index_of_a_former_embedder_goes_when_the_new_one_has_its_own(path: Path) -> None:
    with opened(path) as memory:
        fill(memory)
        memory.drain()
    settings = Settings(approximate_from=200)
    with holdfast.open(path, embedder="fake", work=False, settings=settings) as memory:
        memory.drain()
        assert is_approximate(memory)
    assert len(files(path)) == 2


# --- the graphs themselves --------------------------------------------------------------------------------------------


def block(count: int, pieces: int = 1) -> VectorBlock:
    rows = np.random.default_rng(3).standard_normal((count * pieces, 16)).astype(np.float16)
    return VectorBlock(np.repeat(np.arange(10, 10 + count), pieces), rows)


def built(folder: Path, given: VectorBlock) -> graphs.Graph:
    made = graphs.build_graph(folder, "graph", given, lambda: np.empty(0, np.int64), lambda done: True)
    assert made is not None
    assert made[1] > 0.9
    return made[0]


def test_a_graph_gives_back_the_vectors_of_every_piece(tmp_path: Path) -> None:
    given = block(200, pieces=3)
    graph = OpenGraph(tmp_path, built(tmp_path, VectorBlock(given.numbers, given.rows.copy())))
    found = graph.vectors(np.array([17, 12, 5]))
    assert found.numbers.tolist() == [17] * 3 + [12] * 3
    assert np.array_equal(found.rows, np.concatenate((given.rows[21:24], given.rows[6:9])))


def test_each_record_is_found_once_and_nearest_first(tmp_path: Path) -> None:
    given = block(200, pieces=3)
    graph = OpenGraph(tmp_path, built(tmp_path, given))
    found = graph.search(given.rows[50].astype(np.float32), 60, 100)
    assert len(set(found.tolist())) == len(found)
    best = (given.rows.astype(np.float32) @ given.rows[50].astype(np.float32)).argmax()
    assert found[0] == given.numbers[best]


def test_building_can_be_stopped(tmp_path: Path) -> None:
    assert graphs.build_graph(tmp_path, "graph", block(50), lambda: np.empty(0, np.int64), lambda done: False) is None
    assert list(tmp_path.iterdir()) == []


def test_a_graph_of_another_shape_is_refused(tmp_path: Path) -> None:
    graph = built(tmp_path, block(100))
    other = graphs.Graph(graph.name, graph.vectors, 8, graph.size, graph.digest)
    with pytest.raises(BadGraph):
        OpenGraph(tmp_path, other)
