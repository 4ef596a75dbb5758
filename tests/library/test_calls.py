"""Arguments with two names, arguments that do not fit, and calls that were not awaited."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import pickle
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

import anyio
import pytest

import holdfast
from holdfast import AsyncMemory, ControlPlane, Memory, sdk
from holdfast.control.verbs import VERBS as CONTROL_VERBS
from holdfast.domain.arguments import ALTERNATE_NAMES, Argument
from holdfast.errors import InvalidCall, InvalidInput, MissingAwait
from holdfast.opening import OPTIONS, Opening, Options
from holdfast.runtime.verb_entry import VerbEntry
from holdfast.runtime.verbs import VERBS as LIBRARY_VERBS
from holdfast.sdk import MemoryRuntime
from holdfast.wire import all_verbs, wire_verb

NAMED_TWICE = [
    pytest.param(face, entry, argument, other, id=f"{face.__name__}.{entry.name}")
    for face, table in ((Memory, LIBRARY_VERBS), (ControlPlane, CONTROL_VERBS))
    for entry in table.values()
    for argument in entry.arguments
    for names in ALTERNATE_NAMES
    if argument.name in names
    for other in names - {argument.name}
]


class Performed(Exception):
    """A request reached the service."""


class RecordingService:
    """A service that raises the request instead of performing it."""

    sync_safe = True

    async def perform(self, actor: Any, action: Any, make: Any, *, space: str) -> Any:
        raise Performed(make())

    async def close(self) -> None:
        """Close nothing."""


def required(entry: VerbEntry) -> list[Any]:
    return ["x" for each in entry.arguments if entry.is_positional(each) and each.required]


@pytest.mark.parametrize(("face", "entry", "argument", "other"), NAMED_TWICE)
def test_every_verb_takes_both_names_of_an_argument(
    face: type, entry: VerbEntry, argument: Argument, other: str
) -> None:
    core = {Memory: AsyncMemory, ControlPlane: holdfast.AsyncControlPlane}[face]
    method = getattr(core(RecordingService()), entry.name)  # type: ignore[arg-type]
    requests = []
    for name in (argument.name, other):
        with pytest.raises(Performed) as performed:
            asyncio.run(method(*required(entry), **{name: 7}))
        requests.append(performed.value.args[0])
    assert requests[0] == requests[1]
    assert argument.value_in(requests[0]) == 7
    with pytest.raises(InvalidCall, match=f"{other}: is another name of {argument.name}"):
        method(*required(entry), **{argument.name: 7, other: 7})
    spoken = wire_verb(requests[0])
    body = spoken.request.encode(requests[0])
    assert spoken.request.decode(body.replace(f'"{argument.name}":'.encode(), f'"{other}":'.encode())) == requests[0]
    with pytest.raises(InvalidInput, match="two names of one argument"):
        spoken.request.decode(body.replace(b'"%s":7' % argument.name.encode(), b'"top_k":7,"limit":7'))


def test_every_request_with_an_alternate_name_was_tried() -> None:
    assert len(NAMED_TWICE) > 12
    assert {case.values[1].request for case in NAMED_TWICE} <= {each.request_type for each in all_verbs().values()}


# --- did you mean -----------------------------------------------------------------------------------------------------

GOLDEN = Path(__file__).parent / "golden" / "did_you_mean.txt"
REFRESH = bool(os.environ.get("HOLDFAST_REFRESH_GOLDEN"))
WRONG_CALLS = """
memory.add("I moved.", user_id="ana")
memory.add(content="I moved.")
memory.add(message="I moved.")
memory.add(text="I moved.")
memory.add("I moved.", session_id="42")
memory.add("I moved.", thread_id="42")
memory.add("I moved.", agent_id="helper")
memory.add("I moved.", company="acme")
memory.add("I moved.", tenant="acme")
memory.add("I moved.", "ana")
memory.add()
memory.add("I moved.", messages="I moved.")
memory.add("I moved.", tags={"a": "b"})
memory.search("Lisbon", k=3)
memory.search("Lisbon", n=3)
memory.search("Lisbon", n_results=3)
memory.search("Lisbon", top_k=3, limit=3)
memory.search("Lisbon", threshold=0.5)
memory.search("Lisbon", filter={})
memory.search("Lisbon", subjct="ana")
memory.search("Lisbon", colour="red")
memory.search(q="Lisbon")
memory.search(question="Lisbon")
memory.search(text="Lisbon")
memory.search()
memory.recall("Lisbon", n=3)
memory.recall("Lisbon", 3)
memory.list(k=3)
memory.list(page=2)
memory.list("ana")
memory.get()
memory.get(memory_id="mem_1")
memory.get(id="mem_1")
memory.remember(content="Ana lives in Lisbon.")
memory.remember("Ana lives in Lisbon.", user="ana")
memory.remember("Ana lives in Lisbon.", valid_to="2027-01-01")
memory.correct("mem_1")
memory.correct("mem_1", content="Ana lives in Porto.")
memory.forget(memory_id="mem_1")
memory.forget(user_id="ana")
memory.stats(user_id="ana")
memory.create_user(subject="ana")
memory.add_resource(text="Bees.")
memory.add_resource("Bees.", url="https://example.org")
memory.rebuild(1)
memory.close(True)
memory.delete
memory.remove
memory.store
memory.insert
memory.query
memory.get_all
memory.update
memory.get_context
memory.serach
memory.colour
plane.query("Lisbon", k=3)
plane.query("Lisbon", top_k=3, limit=3)
plane.query(question="Lisbon")
plane.operations(n=3)
plane.set_override("helper")
plane.search
plane.add
plane.delete
holdfast.open(path="memory.db")
holdfast.open("memory.db", "static")
holdfast.open("memory.db", model="static")
holdfast.open("memory.db", tenant="acme")
holdfast.open("memory.db", api_key="hunter2")
holdfast.open("memory.db", colour="red")
holdfast.open_async("memory.db", timeout=3)
holdfast.ControlPlane.open("memory.db", company="acme")
holdfast.copy("memory.db")
holdfast.copy("memory.db", "copy.db", True)
holdfast.copy("memory.db", "copy.db", overwrite=True)
holdfast.Memory("memory.db")
holdfast.Memory()
holdfast.ControlPlane("memory.db")
holdfast.connect
holdfast.Client
MemoryRuntime("memory.db")
builder.store(path="memory.db")
builder.store()
builder.identity("ana")
builder.identity(user_id="ana")
builder.identity(subject="ana")
builder.model("gpt", api_key="hunter2")
builder.location
MemoryRecallRequest(question="Lisbon")
MemoryRecallRequest("Lisbon", k=3)
MemoryScope(session_id="42")
""".strip().splitlines()


def message_of(expression: str, names: dict[str, Any]) -> str:
    with pytest.raises((InvalidCall, AttributeError)) as refused:
        eval(expression, names)
    return f"{expression}\n    {type(refused.value).__name__}: {refused.value}\n"


def test_every_wrong_call_says_what_is_right(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "m.db", embedder="fake") as memory:
        memory.add("I moved to Lisbon.")
        before = memory.stats()
        with ControlPlane.open(tmp_path / "p.db", embedder="fake") as plane:
            names = {
                **vars(sdk), "memory": memory, "plane": plane, "holdfast": holdfast, "builder": MemoryRuntime.builder()
            }  # fmt: skip
            table = "".join(message_of(expression, names) for expression in WRONG_CALLS)
        assert memory.stats() == before
    assert "hunter2" not in table.replace('api_key="hunter2"', "")
    if REFRESH:
        GOLDEN.write_text(table, "utf-8")
    assert table == GOLDEN.read_text("utf-8")


def test_a_wrong_argument_is_an_error_of_ours_and_of_python() -> None:
    with holdfast.open(":memory:", embedder="fake") as memory, pytest.raises(TypeError) as refused:
        memory.search("Lisbon", user_id="ana")  # type: ignore[call-arg]
    assert isinstance(refused.value, holdfast.HoldfastError)
    assert (refused.value.code, refused.value.field) == ("invalid_call", "user_id")
    copy = pickle.loads(pickle.dumps(refused.value))
    assert (str(copy), copy.field) == (str(refused.value), "user_id")


def test_an_error_inside_a_call_that_fits_is_raised_as_it_is() -> None:
    class Broken:
        def now(self) -> Any:
            raise TypeError("the clock is broken")

    with pytest.raises(TypeError, match="the clock is broken") as raised:
        holdfast.open(":memory:", embedder="fake", clock=Broken()).add("One.")
    assert not isinstance(raised.value, InvalidCall)


def test_the_signatures_of_openings_show_every_option() -> None:
    for opening in (holdfast.open, holdfast.open_async, ControlPlane.open, holdfast.AsyncControlPlane.open):
        parameters = inspect.signature(opening).parameters
        assert list(parameters)[-len(OPTIONS) :] == list(OPTIONS) == list(Options.__annotations__)
        help_text = inspect.getdoc(opening) or ""
        assert all(f"{name}: {option.help}" in help_text for name, option in OPTIONS.items())


# --- forgotten await --------------------------------------------------------------------------------------------------

USES = {
    "for": list,
    "index": lambda call: call[0],
    "len": len,
    "attribute": lambda call: call.text,
    "truth": bool,
    "in": lambda call: "x" in call,
    "with": lambda call: call.__enter__(),
}


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(test(**given))

    return run


def opened_async() -> Opening:
    return holdfast.open_async(":memory:", embedder="fake", work=False)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.filterwarnings("ignore:coroutine 'memory.search' was never awaited")
@on_a_loop
async def test_a_forgotten_await_says_what_to_write(use: Any) -> None:
    async with opened_async() as memory:
        with pytest.raises(MissingAwait, match=r"^search: was not awaited; write: await memory.search\(...\)$"):
            use(memory.search("Lisbon"))


@on_a_loop
async def test_async_for_over_a_call_says_what_to_write() -> None:
    async with opened_async() as memory:
        call = memory.search("Lisbon")
        with pytest.raises(MissingAwait, match=r"await memory.search"):
            aiter(call)
        assert "await" in repr(call)
        assert await call == ()


@on_a_loop
async def test_a_call_that_is_never_awaited_warns() -> None:
    async with opened_async() as memory:
        with pytest.warns(RuntimeWarning, match=r"coroutine 'memory.add' was never awaited"):
            memory.add("One.")
        assert (await memory.stats()).messages == 0


@on_a_loop
async def test_calls_are_coroutines_for_everything_that_runs_them() -> None:
    async with opened_async() as memory:
        call = memory.add("One.")
        assert inspect.isawaitable(call)
        assert asyncio.iscoroutine(call)
        await call
        with pytest.raises(RuntimeError, match="already awaited"):
            await call
        await asyncio.create_task(memory.add("Two."), name="two")
        await asyncio.gather(memory.add("Three."), memory.add("Four."))
        await asyncio.wait_for(memory.add("Five."), 60)
        await asyncio.shield(memory.add("Six."))
        async with asyncio.timeout(60), anyio.create_task_group() as group:
            group.start_soon(memory.add, "Seven.")
        for done in asyncio.as_completed([memory.add("Eight.")]):
            await done
        task = asyncio.create_task(memory.drain())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await memory.stats()).messages == 8
    assert asyncio.iscoroutinefunction(memory.add)


def test_calls_run_on_every_kind_of_loop() -> None:
    memory = asyncio.run(opened_async().open_memory(), debug=True)
    assert asyncio.run(memory.search("Lisbon"), debug=True) == ()
    assert anyio.run(memory.search, "Lisbon") == ()
    loop = asyncio.new_event_loop()
    try:
        assert loop.run_until_complete(memory.search("Lisbon")) == ()
        loop.run_until_complete(memory.close())
    finally:
        loop.close()


def test_every_asynchronous_method_is_a_coroutine_function_with_its_own_signature() -> None:
    for face in (AsyncMemory, holdfast.AsyncControlPlane, sdk.AsyncMemoryRuntime):
        for name, method in inspect.getmembers(face, inspect.isroutine):
            if not name.startswith("_") and inspect.iscoroutinefunction(inspect.unwrap(method)):
                assert inspect.iscoroutinefunction(method), name
                assert "kwargs" not in inspect.signature(method).parameters, name
                assert method is not inspect.unwrap(method), f"{name} does not explain a forgotten await"


@on_a_loop
async def test_an_opening_that_was_not_awaited_says_what_to_write() -> None:
    for use in (lambda opening: opening.add("One."), lambda opening: opening.__enter__()):
        with pytest.raises(MissingAwait, match=r"memory = await holdfast.open_async"):
            use(opened_async())
    with pytest.raises(InvalidCall, match=r"is blocking; write: with holdfast.open"):
        await contextlib.AsyncExitStack().enter_async_context(holdfast.open(":memory:", embedder="fake"))  # type: ignore[arg-type]
    async with opened_async() as memory:
        call = memory.add("One.")
        with pytest.raises(MissingAwait, match=r"await memory.add"):
            await contextlib.AsyncExitStack().enter_async_context(call)  # type: ignore[arg-type]
        await call
