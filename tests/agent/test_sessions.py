"""The agent's sessions: durable, in order, searched by messages only, and erased to the last byte when deleted."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import sqlite3
import stat
import string
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.agent.ports import NewSessionEvent, Role, SessionEvent, SessionHit, SessionStore
from holdfast.app import open_sessions
from holdfast.errors import InvalidInput, SchemaTooNew, StoreBusy, StoreClosed, StoreUnusable
from holdfast.settings import Settings
from holdfast.stores.sessions import SqliteSessions
from holdfast.stores.sessions.schema import STEPS

LAYOUTS = int(os.environ.get("HOLDFAST_LAYOUTS", "3"))


def user(text: str) -> NewSessionEvent:
    return NewSessionEvent("message", text, Role.USER, context_visible=True)


def assistant(text: str) -> NewSessionEvent:
    return NewSessionEvent("message", text, Role.ASSISTANT, context_visible=True)


def hidden(kind: str, content: str = "", role: Role | None = None, **data: object) -> NewSessionEvent:
    return NewSessionEvent(kind, content, role, data)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SessionStore]:
    sessions = open_sessions(folder / "state.db", Settings())
    try:
        yield sessions
    finally:
        await sessions.close()


def texts(found: tuple[SessionEvent, ...] | tuple[SessionHit, ...]) -> list[str]:
    return [each.content if isinstance(each, SessionEvent) else each.text for each in found]


# --- storing --------------------------------------------------------------------------------------------------------


def test_what_was_appended_is_there_in_order_after_a_restart(tmp_path: Path) -> None:
    async def talk() -> None:
        async with opened(tmp_path) as sessions:
            first = await sessions.append("one", "run-1", [user("Hello"), hidden("tool_call", "x", name="clock")])
            then = await sessions.append("one", "run-2", [assistant("Good day")])
            assert [event.number for event in (*first, *then)] == [1, 2, 3]
        async with opened(tmp_path) as sessions:
            assert await sessions.events("one") == (*first, *then)
            assert first[1].data == {"name": "clock"}
            assert [event.run_id for event in first + then] == ["run-1", "run-1", "run-2"]
            assert texts(await sessions.events("one", visible=True)) == ["Hello", "Good day"]
            assert texts(await sessions.events("one", last=2)) == ["x", "Good day"]
            assert texts(await sessions.events("one", visible=True, last=1)) == ["Good day"]
            assert await sessions.events("one", last=0) == ()
            assert await sessions.events("another") == ()

    asyncio.run(talk())


def test_a_batch_is_kept_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    async def talk() -> None:
        async with opened(tmp_path) as sessions:
            with pytest.raises(InvalidInput, match="odd"):
                await sessions.append("one", "run", [user("Hello"), hidden("odd", value=object())])
            assert await sessions.events("one") == ()
            assert await sessions.sessions() == ()
            assert await sessions.append("one", "run", []) == ()
            assert await sessions.sessions() == ()

    asyncio.run(talk())


def test_any_text_that_a_model_may_write_is_kept(tmp_path: Path) -> None:
    odd = ["\x00 in \x00 it", "half a pair: \ud83d", "e\u0301 \u202e \U0001f600", "", "\n\n"]

    async def talk() -> None:
        async with opened(tmp_path) as sessions:
            await sessions.append("one", "run", [assistant(text) for text in odd])
            kept = texts(await sessions.events("one"))
            assert kept == [odd[0], "half a pair: \ufffd", *odd[2:]]
            assert texts(await sessions.search("half \ud83d")) == ["half a pair: \ufffd"]

    asyncio.run(talk())


def test_names_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    async def talk() -> None:
        async with opened(tmp_path) as sessions:
            for session_id, run_id in (("", "run"), ("a\nb", "run"), ("x" * 300, "run"), ("one", "")):
                with pytest.raises(InvalidInput):
                    await sessions.append(session_id, run_id, [user("Hello")])

    asyncio.run(talk())


def test_sessions_are_listed_the_latest_first_with_what_the_user_said_first(tmp_path: Path) -> None:
    moments = iter(datetime(2026, 11, 15, 9, tzinfo=UTC) + timedelta(minutes=minute) for minute in range(10))

    async def talk() -> None:
        sessions = SqliteSessions(str(tmp_path / "state.db"), now=lambda: next(moments))
        await sessions.append("one", "r", [hidden("run_started"), assistant("Hi"), user("Where\nis " + "x" * 100)])
        await sessions.append("two", "r", [user("Second")])
        await sessions.append("one", "r", [assistant("There")])
        one, two = await sessions.sessions()
        assert (one.id, one.messages, two.id, two.title) == ("one", 3, "two", "Second")
        assert one.title == "Where is " + "x" * 70 + "…"
        assert (one.last_at - one.started_at) == timedelta(minutes=2)
        assert [found.id for found in await sessions.sessions(1)] == ["one"]
        assert [found.id for found in await sessions.sessions(before=one.last_at)] == ["two"]
        await sessions.close()

    asyncio.run(talk())


def test_a_clock_that_is_set_back_does_not_put_an_answer_before_its_question(tmp_path: Path) -> None:
    moments = iter([datetime(2026, 11, 15, 10, tzinfo=UTC), datetime(2026, 11, 15, 9, tzinfo=UTC)])

    async def talk() -> None:
        sessions = SqliteSessions(str(tmp_path / "state.db"), now=lambda: next(moments))
        (asked,) = await sessions.append("one", "r", [user("When?")])
        (answered,) = await sessions.append("one", "r", [assistant("Now")])
        assert answered.at == asked.at
        await sessions.close()

    asyncio.run(talk())


# --- searching ------------------------------------------------------------------------------------------------------


def test_only_what_was_said_is_searched(tmp_path: Path) -> None:
    async def talk() -> None:
        async with opened(tmp_path) as sessions:
            await sessions.append(
                "one",
                "run",
                [
                    user("My dog is called Rex"),
                    hidden("memory_gateway_recall_succeeded", "walrus", results=1),
                    hidden("tool_result", "walrus", Role.TOOL),
                    NewSessionEvent("skill", "walrus", Role.SYSTEM, context_visible=True),
                    hidden("message", "walrus", Role.USER),
                    assistant("A good name"),
                ],
            )
            assert await sessions.search("walrus") == ()
            (hit,) = await sessions.search("dog")
            assert (hit.number, hit.role) == (1, Role.USER)
            assert texts(hit.around) == ["A good name"]

    asyncio.run(talk())


def test_each_session_gives_its_best_message_and_the_current_one_none(tmp_path: Path) -> None:
    async def talk() -> None:
        async with opened(tmp_path) as sessions:
            for number in range(4):
                said = [user(f"about the lighthouse {number}"), assistant("fine"), user("the lighthouse keeper")]
                await sessions.append(f"s{number}", "r", said)
            hits = await sessions.search("lighthouse keeper", without="s2", limit=3)
            assert {hit.session_id for hit in hits} == {"s0", "s1", "s3"}
            assert set(texts(hits)) == {"the lighthouse keeper"}
            assert texts(hits[0].around)[1:] == ["fine"]
            assert len(await sessions.search("lighthouse", limit=2)) == 2
            assert await sessions.search("lighthouse", limit=0) == ()

    asyncio.run(talk())


SPACELESS = [
    ("我昨天在里斯本买了一只猫，名叫小白", ["里斯本", "猫", "小白", "你的猫叫什么"]),
    ("来週の火曜日に歯医者へ行きます", ["歯医者", "火曜日", "来週"]),
    ("우리 강아지 이름은 초코예요", ["강아지", "초코"]),
    ("แมวของฉันชื่อมะลิ", ["แมว", "มะลิ"]),
]
FOLDED = [
    ("We met at the Café Müller", ["cafe", "MULLER", "café", "Mu\u0308ller", "ｃａｆｅ"]),
    ("I am allergic to peanuts", ["peanut allergic", "allergy peanut", "peanuts?"]),
    ("Мы живём в Лиссабоне", ["лиссабоне", "ЖИВЁМ"]),
    ("run holdfast.open('x') with node.js v1.2", ["holdfast.open", "node.js", "v1.2", "open"]),
    ("मेरा कुत्ता रेक्स है", ["कुत्ता", "रेक्स"]),
]


@pytest.mark.parametrize(("said", "queries"), SPACELESS + FOLDED)
def test_a_text_is_found_by_its_words_in_any_script(tmp_path: Path, said: str, queries: list[str]) -> None:
    async def talk() -> None:
        async with opened(tmp_path) as sessions:
            await sessions.append("one", "r", [user(said)])
            await sessions.append("two", "r", [user("狗 犬 something else 전혀 หมา дом घर")])
            for query in queries:
                found = [hit.session_id for hit in await sessions.search(query)]
                assert found == ["one"], query

    asyncio.run(talk())


@pytest.mark.parametrize(
    "query",
    ["NEAR(quay, 2)", "quay AND", "NOT quay", "quay OR", "words:quay", "{words} : quay", "^quay", "quay*", '"quay',
     "(quay", "quay)", "-quay", "quay'; DROP TABLE events; --", 'said MATCH "quay"', "\x00quay", "？quay。", "near*",
     "quay " * 5_000],
)  # fmt: skip
def test_no_query_is_syntax(tmp_path: Path, query: str) -> None:
    async def talk() -> None:
        async with opened(tmp_path) as sessions:
            await sessions.append("one", "r", [user("We met near the quay and did not stay")])
            await sessions.append("two", "r", [user("nothing of the kind")])
            assert [hit.session_id for hit in await sessions.search(query)] == ["one"]

    asyncio.run(talk())


@pytest.mark.parametrize(
    "query", ["", '"', '""', "*", "...", "^", "\x00", "？。", "🙂", "quay" * 5_000, "qua", "猫" * 500]
)
def test_a_query_without_a_word_that_was_said_finds_nothing(tmp_path: Path, query: str) -> None:
    async def talk() -> None:
        async with opened(tmp_path) as sessions:
            await sessions.append("one", "r", [user("We met near the quay and did not stay 🙂")])
            assert await sessions.search(query) == ()

    asyncio.run(talk())


def test_words_that_every_text_has_find_nothing_beside_words_that_tell(tmp_path: Path) -> None:
    async def talk() -> None:
        async with opened(tmp_path) as sessions:
            await sessions.append("one", "r", [user("What is the weather like where you are?")])
            await sessions.append("two", "r", [user("The wedding is on the fourth")])
            assert [hit.session_id for hit in await sessions.search("When is the wedding?")] == ["two"]
            assert [hit.session_id for hit in await sessions.search("where you are")] == ["one"]

    asyncio.run(talk())


# --- comparison with a list -----------------------------------------------------------------------------------------

WORDS = ["apple", "brick", "cloud", "drum", "犬", "猫"]
spoken = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
event = st.builds(
    NewSessionEvent,
    st.sampled_from(["message", "tool_result"]),
    spoken,
    st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL, None]),
    st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2),
    st.booleans(),
)
name = st.sampled_from(["a", "b", "c"])
step = st.one_of(
    st.tuples(st.just("append"), name, st.lists(event, min_size=1, max_size=3)),
    st.tuples(st.just("delete"), name, st.none()),
    st.tuples(st.just("reopen"), name, st.none()),
)


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(step, max_size=12), asked=st.sampled_from(WORDS), without=name)
def test_it_behaves_as_lists_do(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, str, list[NewSessionEvent]]],
    asked: str,
    without: str,
) -> None:
    folder = tmp_path_factory.mktemp("model")

    async def compare() -> None:
        model: dict[str, list[NewSessionEvent]] = {}
        sessions = open_sessions(folder / "state.db", Settings())
        for kind, session, events in steps:
            if kind == "append":
                model.setdefault(session, []).extend(events)
                await sessions.append(session, "run", events)
            elif kind == "delete":
                assert await sessions.delete(session) == (model.pop(session, None) is not None)
            else:
                await sessions.close()
                sessions = open_sessions(folder / "state.db", Settings())
        for session in ("a", "b", "c"):
            kept = await sessions.events(session)
            assert [NewSessionEvent(e.kind, e.content, e.role, e.data, e.context_visible) for e in kept] == model.get(
                session, []
            )
            assert [e.number for e in kept] == list(range(1, len(kept) + 1))
        said = {session: [e for e in events if e.context_visible and e.role in (Role.USER, Role.ASSISTANT)]
                for session, events in model.items()}  # fmt: skip
        assert {each.id: each.messages for each in await sessions.sessions()} == {s: len(e) for s, e in said.items()}
        hits = await sessions.search(asked, without=without)
        matching = {s for s, events in said.items() if s != without and any(asked in e.content for e in events)}
        assert {hit.session_id for hit in hits} == matching
        assert all(asked in hit.text for hit in hits)
        await sessions.close()

    asyncio.run(compare())


# --- deleting -------------------------------------------------------------------------------------------------------


def bytes_of(folder: Path) -> bytes:
    return b"\n\n".join(path.read_bytes() for path in sorted(folder.iterdir()))


def pieces_of(raw: bytes) -> NDArray[np.uint64]:
    """Every window of eight bytes, as a number."""
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(raw, np.uint8), 8)
    return np.ascontiguousarray(windows).view(np.uint64).ravel()


def canary(random_: random.Random, chars: int) -> str:
    """Words of random lower-case letters: the index stores them unchanged, and no eight letters occur elsewhere."""
    return " ".join("".join(random_.choices(string.ascii_lowercase, k=12)) for _ in range(max(1, chars // 13)))


@pytest.mark.parametrize("seed", range(LAYOUTS))
def test_a_deleted_session_leaves_no_byte(tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    secrets: dict[str, list[str]] = {}

    async def live() -> None:
        async with opened(tmp_path) as sessions:
            for _ in range(120):
                if secrets and random_.random() < 0.12:
                    gone = random_.choice(list(secrets))
                    assert await sessions.delete(gone)
                    there = pieces_of(bytes_of(tmp_path))
                    # Word by word: the index does not store the text between two words.
                    words = " ".join([gone, *secrets.pop(gone)]).split()
                    own = np.concatenate([pieces_of(word.encode()) for word in words])
                    left = own[np.isin(own, there)]
                    assert not len(left), left[:1].tobytes()
                else:
                    session = random_.choice([*secrets, f"{random_.getrandbits(64):016x}"])
                    text = canary(random_, random_.choice([12, 60, 300, 1_500, 5_000, 20_000]))
                    secrets.setdefault(session, []).append(text)
                    made = random_.choice([user(text), assistant(text), hidden("tool_result", text, note=text)])
                    await sessions.append(session, "run", [made])
            for session, kept in secrets.items():
                assert texts(await sessions.events(session)) == kept

    asyncio.run(live())


def test_what_a_reader_kept_from_being_overwritten_goes_when_the_file_is_next_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.stores.sessions.store.SCRUB_SECONDS", 0.05)

    async def live() -> None:
        sessions = open_sessions(tmp_path / "state.db", Settings())
        await sessions.append("one", "run", [user("quicksilver")])
        with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM events").fetchone()
            assert await sessions.delete("one")
            assert await sessions.events("one") == ()
            assert b"quicksilver" in bytes_of(tmp_path), "the reader was in nobody's way"
            # Simulate the end of the process here.
            await sessions.close()
            reader.execute("ROLLBACK")
        async with opened(tmp_path) as again:
            assert await again.search("quicksilver") == ()
        assert b"quicksilver" not in bytes_of(tmp_path)

    asyncio.run(live())


def test_what_a_crash_kept_from_being_overwritten_goes_when_the_file_is_next_opened(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, sys\nfrom holdfast.agent.ports import NewSessionEvent, Role\n"
        "from holdfast.stores.sessions import SqliteSessions\n"
        "async def main():\n"
        "    sessions = SqliteSessions(sys.argv[1])\n"
        "    await sessions.append('one', 'run', [NewSessionEvent('message', 'quicksilver', Role.USER, {}, True)])\n"
        "    SqliteSessions._scrub = lambda self: os._exit(9)\n"
        "    await sessions.delete('one')\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path / "state.db")], timeout=60, check=False)
    assert ended.returncode == 9
    assert b"quicksilver" in bytes_of(tmp_path)

    async def live() -> None:
        async with opened(tmp_path) as sessions:
            assert await sessions.sessions() == ()
            # The writer is serial: it finishes the deletion before it acknowledges this append.
            await sessions.append("two", "run", [user("Hello")])
            assert b"quicksilver" not in bytes_of(tmp_path)

    asyncio.run(live())


# --- several processes ----------------------------------------------------------------------------------------------

EACH = 25


def _writes(location: Path, who: int) -> None:
    async def write() -> None:
        async with opened(location) as sessions:
            for number in range(EACH):
                await sessions.append("shared", f"run-{who}", [user(f"w{who}n{number}"), hidden("done")])
                await sessions.append(f"own-{who}", "run", [assistant(f"w{who}n{number}")])

    asyncio.run(write())


def test_several_processes_share_a_file_and_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_writes, args=(tmp_path, who)) for who in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]

    async def look() -> None:
        async with opened(tmp_path) as sessions:
            shared = await sessions.events("shared")
            assert [event.number for event in shared] == list(range(1, 4 * EACH * 2 + 1))
            for who in range(4):
                expected = [f"w{who}n{number}" for number in range(EACH)]
                assert [event.content for event in shared if event.run_id == f"run-{who}" and event.content] == expected
                assert texts(await sessions.events(f"own-{who}")) == expected
            assert {hit.session_id for hit in await sessions.search("w2n7")} == {"shared", "own-2"}

    asyncio.run(look())


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from holdfast.app import open_sessions\nfrom holdfast.settings import Settings\n"
        "from holdfast.agent.ports import NewSessionEvent, Role\n"
        "async def main():\n"
        "    sessions = open_sessions(Path(sys.argv[1]), Settings())\n"
        "    for number in range(10_000):\n"
        "        await sessions.append('one', 'run', [NewSessionEvent('message', str(number), Role.USER, {}, True)])\n"
        "        print(number, flush=True)\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "state.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = [writer.stdout.readline().strip() for _ in range(60)]
        writer.kill()
        acknowledged += [line for line in writer.stdout.read().split("\n") if line]

    async def look() -> None:
        async with opened(tmp_path) as sessions:
            kept = texts(await sessions.events("one"))
            assert kept[: len(acknowledged)] == acknowledged
            assert len(kept) - len(acknowledged) in (0, 1)

    asyncio.run(look())


# --- files ----------------------------------------------------------------------------------------------------------


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    async def live() -> None:
        async with opened(tmp_path / "home" / "sessions") as sessions:
            await sessions.append("one", "run", [user("Hello")])
            found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home/sessions").iterdir()}
            assert found
            assert set(found.values()) == {0o600}
            assert stat.S_IMODE((tmp_path / "home/sessions").stat().st_mode) == 0o700

    asyncio.run(live())


def test_a_file_of_a_newer_holdfast_is_refused_untouched(tmp_path: Path) -> None:
    async def make() -> None:
        async with opened(tmp_path) as sessions:
            await sessions.append("one", "run", [user("Hello")])

    asyncio.run(make())
    with closing(sqlite3.connect(tmp_path / "state.db")) as db:
        db.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    with pytest.raises(SchemaTooNew, match="upgrade Holdfast"):
        open_sessions(tmp_path / "state.db", Settings())


def test_what_is_no_file_of_sessions_is_refused_untouched(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as db:
        db.execute("CREATE TABLE theirs (x)")
    (tmp_path / "text.db").write_text("Not a database at all, but long enough to look like one to somebody.")
    (tmp_path / "folder.db").mkdir()
    for place in sorted(tmp_path.iterdir()):
        before = place.read_bytes() if place.is_file() else None
        with pytest.raises(StoreUnusable, match=place.name):
            open_sessions(place, Settings())
        assert (place.read_bytes() if place.is_file() else None) == before
    with pytest.raises(StoreUnusable, match=r"text\.db"):
        open_sessions(tmp_path / "text.db" / "state.db", Settings())


def test_a_lock_that_is_not_let_go_is_told_and_holds_up_neither_readers_nor_the_event_loop(tmp_path: Path) -> None:
    async def live() -> None:
        sessions = SqliteSessions(str(tmp_path / "state.db"), busy_seconds=0.5)
        await sessions.append("one", "run", [user("Hello")])
        with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(sessions.append("one", "run", [user("Again")]))
            ticks = 0
            while not waiting.done():
                assert texts(await sessions.events("one")) == ["Hello"]
                await asyncio.sleep(0.01)
                ticks += 1
            assert ticks > 5
            with pytest.raises(StoreBusy):
                await waiting
            other.execute("ROLLBACK")
        await sessions.append("one", "run", [user("Third")])
        assert texts(await sessions.events("one")) == ["Hello", "Third"]
        await sessions.close()

    asyncio.run(live())


def test_closed_sessions_say_so(tmp_path: Path) -> None:
    async def live() -> None:
        sessions = open_sessions(tmp_path / "state.db", Settings())
        writing = asyncio.create_task(sessions.append("one", "run", [user("Hello")]))
        await asyncio.sleep(0)
        await sessions.close()
        await sessions.close()
        assert len(await writing) == 1, "what was accepted is finished"
        for call in (sessions.append("one", "r", [user("x")]), sessions.events("one"), sessions.delete("one")):
            with pytest.raises(StoreClosed):
                await call

    asyncio.run(live())
