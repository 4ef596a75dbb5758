"""The provider suite can fail: each adapter here has one bug, paired with the test that must catch it."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.contract import (
    Capabilities,
    CaptureResult,
    ContextBundle,
    CorrectResult,
    ForgetResult,
    ListPage,
    ProfileResult,
    RecordHandle,
    TraceResult,
    Usage,
    WriteResult,
)
from holdfast.testing.provider_contract import AdapterFactory, ProviderContract

_PAGE = Path(__file__).parents[2] / "docs/how-to/write-a-provider.md"
_SNIPPETS = re.findall(r"^```python\n(.*?)^```", _PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
_NAMES: dict[str, Any] = {"__name__": __name__}
exec(compile(_SNIPPETS[0], "write-a-provider.md", "exec", dont_inherit=True), _NAMES)
JarAdapter: Any = _NAMES["JarAdapter"]
wall: Callable[[Any], tuple[Any, ...]] = _NAMES["wall"]


class Deaf(JarAdapter):
    async def upsert_records(self, request: Any) -> WriteResult:
        return WriteResult(tuple(RecordHandle("jar", f"jar-{index}") for index, _ in enumerate(request.records)))


class Forgetful(JarAdapter):
    """Accept captures and store nothing."""

    async def capture(self, request: Any) -> CaptureResult:
        return CaptureResult()


class Twice(JarAdapter):
    """Capture a repeated request again."""

    async def capture(self, request: Any) -> Any:
        return await super().capture(replace(request, idempotency_id=None))


class Keyless(JarAdapter):
    def _put(self, scope: Any, record: Any, source: Any, once: Any) -> Any:
        kept = super()._put(scope, replace(record, metadata={}), source, once)
        self._jar[-1].record = record
        return kept


class Disordered(JarAdapter):
    async def upsert_records(self, request: Any) -> WriteResult:
        done = await super().upsert_records(request)
        return WriteResult(done.records[::-1])


class Misnamed(JarAdapter):
    async def upsert_records(self, request: Any) -> WriteResult:
        done = await super().upsert_records(request)
        return WriteResult(tuple(RecordHandle("jug", each.record_id) for each in done.records))

    def _find(self, handle: Any, scope: Any) -> Any:
        return super()._find(RecordHandle("jar", handle.record_id), scope)


class Inventive(JarAdapter):
    """Return metadata that was never stored."""

    async def query(self, request: Any) -> ContextBundle:
        found = await super().query(request)
        return ContextBundle(tuple(replace(each, metadata={"mood": "fine"}) for each in found.snippets))


class Generous(JarAdapter):
    async def query(self, request: Any) -> Any:
        return await super().query(replace(request, top_k=request.top_k + 1))


class WorstFirst(JarAdapter):
    async def query(self, request: Any) -> ContextBundle:
        return ContextBundle((await super().query(request)).snippets[::-1])


class Fuzzy(JarAdapter):
    """Score good and bad matches alike."""

    async def query(self, request: Any) -> ContextBundle:
        found = await super().list(request_for_all(request))
        return ContextBundle(tuple(replace(each, score=1.0) for each in found.items[: request.top_k]))


def request_for_all(request: Any) -> Any:
    return _Listing(request.scope, request.metadata_filter)


class _Listing:
    def __init__(self, scope: Any, metadata_filter: Any) -> None:
        self.scope, self.metadata_filter, self.cursor, self.limit = scope, metadata_filter, None, 200


class OldestFirst(JarAdapter):
    async def list(self, request: Any) -> ListPage:
        before = 0 if request.cursor is None else int(request.cursor)
        found = [each for each in self._within(request, whole=True) if each.number > before]
        page = found[: request.limit]
        more = len(found) > len(page)
        return ListPage(tuple(map(_NAMES["snippet"], page)), str(page[-1].number) if more else None)


class ByOffset(JarAdapter):
    """Page by offset: pages shift while others write."""

    async def list(self, request: Any) -> ListPage:
        start = 0 if request.cursor is None else int(request.cursor)
        found = self._within(request, whole=True)[::-1]
        page = found[start : start + request.limit]
        more = len(found) > start + request.limit
        return ListPage(tuple(map(_NAMES["snippet"], page)), str(start + request.limit) if more else None)


class Credulous(JarAdapter):
    """Treat any invalid cursor as the first page."""

    async def list(self, request: Any) -> Any:
        cursor = request.cursor if request.cursor is None or request.cursor.isdecimal() else None
        return await super().list(replace(request, cursor=cursor))


class Unfiltered(JarAdapter):
    async def list(self, request: Any) -> Any:
        return await super().list(replace(request, metadata_filter={}))


class Raising(JarAdapter):
    async def get(self, handle: Any, scope: Any) -> Any:
        found = await super().get(handle, scope)
        if found is None:
            raise KeyError(handle)
        return found


class WithoutWalls(JarAdapter):
    """Ignore one part of the scope, which a subclass names."""

    open_to = 0

    def _within(self, request: Any, whole: bool = False) -> Any:
        given = tuple(value for at, value in enumerate(wall(request.scope)) if at != self.open_to)
        return [
            each
            for each in self._jar
            if tuple(value for at, value in enumerate(wall(each.scope)) if at != self.open_to) == given
        ]


class AcrossCompanies(WithoutWalls):
    open_to = 0


class AcrossAgents(WithoutWalls):
    open_to = 1


class AcrossSubjects(WithoutWalls):
    open_to = 2


class AcrossNamespaces(WithoutWalls):
    open_to = 3


class ByHandleAlone(JarAdapter):
    """Find a record by its handle alone, whatever the scope."""

    def _find(self, handle: Any, scope: Any) -> Any:
        return next((each for each in self._jar if _NAMES["handle_of"](each) == handle), None)


class Folding(JarAdapter):
    """Compare names in lower case, as a case-insensitive file system does."""

    def _within(self, request: Any, whole: bool = False) -> Any:
        lowered = [str(part).lower() for part in wall(request.scope)]
        return [each for each in self._jar if [str(part).lower() for part in wall(each.scope)] == lowered]


class ByRun(JarAdapter):
    async def query(self, request: Any) -> ContextBundle:
        found = await super().query(request)
        return ContextBundle(tuple(each for each in found.snippets if each.scope.run == request.scope.run))


class Hiding(JarAdapter):
    """Report records as forgotten, but only leave them out of lists."""

    def __init__(self, jar: Any) -> None:
        super().__init__(jar)
        self._hidden: set[Any] = set()

    async def forget(self, handles: Any, scope: Any) -> ForgetResult:
        self._hidden |= set(handles)
        return ForgetResult(tuple(handles))

    async def list(self, request: Any) -> Any:
        page = await super().list(request)
        return replace(page, items=tuple(each for each in page.items if each.handle not in self._hidden))


class Tombstoning(Hiding):
    """Leave records out of every read while this instance lives; the data stays."""

    async def get(self, handle: Any, scope: Any) -> Any:
        return None if handle in self._hidden else await super().get(handle, scope)

    async def query(self, request: Any) -> Any:
        found = await super().query(request)
        return replace(found, snippets=tuple(each for each in found.snippets if each.handle not in self._hidden))


class Touchy(JarAdapter):
    """Forget all handles or none."""

    async def forget(self, handles: Any, scope: Any) -> Any:
        if any(self._find(handle, scope) is None for handle in handles):
            return ForgetResult((), tuple(handles))
        return await super().forget(handles, scope)


class Boastful(JarAdapter):
    """Declare correction, but do not correct."""

    capabilities = Capabilities(correction=True)

    async def correct(self, handle: Any, text: str, scope: Any, reason: Any) -> CorrectResult:
        return CorrectResult(handle)


class Unsaid(JarAdapter):
    """Support an operation without declaring it."""

    async def profile(self, scope: Any) -> ProfileResult:
        return ProfileResult("- likes tea")


class Gossip(JarAdapter):
    capabilities = Capabilities(profile=True)

    async def profile(self, scope: Any) -> ProfileResult:
        return ProfileResult("\n".join(each.record.text for each in self._jar)[-2_000:] or None)


class Opaque(JarAdapter):
    capabilities = Capabilities(explanation=True)

    async def explain(self, request: Any) -> TraceResult:
        return TraceResult({"because": object()})


class Trimming(JarAdapter):
    def _put(self, scope: Any, record: Any, source: Any, once: Any) -> Any:
        return super()._put(scope, replace(record, text=record.text.strip()), source, once)


class Cutting(JarAdapter):
    def _put(self, scope: Any, record: Any, source: Any, once: Any) -> Any:
        return super()._put(scope, replace(record, text=record.text[:10_000]), source, once)


class Swallowing(JarAdapter):
    """Store text with invalid characters instead of refusing it."""

    async def upsert_records(self, request: Any) -> Any:
        plain = tuple(replace(each, text=each.text.replace("\x00", "")) for each in request.records)
        return await super().upsert_records(replace(request, records=plain))


class Halfway(JarAdapter):
    """Write the records before an invalid one."""

    async def upsert_records(self, request: Any) -> WriteResult:
        return WriteResult(tuple(self._put(request.scope, each, request.source, None) for each in request.records))


class Losing(JarAdapter):
    """Read, wait, write: some concurrent writes are lost."""

    async def upsert_records(self, request: Any) -> Any:
        before = list(self._jar)
        done = await super().upsert_records(request)
        new = [each for each in self._jar if each not in before]
        await asyncio.sleep(0.001)
        self._jar[:] = [*before, *new]
        return done


class Stubborn(JarAdapter):
    """Replace the cancellation with another error."""

    async def query(self, request: Any) -> Any:
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            raise RuntimeError("somebody left") from None
        return await super().query(request)


class OnceClosed(JarAdapter):
    closed = False

    async def close(self) -> None:
        assert not self.closed, "closed twice"
        self.closed = True


class Ephemeral(JarAdapter):
    async def close(self) -> None:
        self._jar.clear()


class Overcharging(JarAdapter):
    async def query(self, request: Any) -> Any:
        found = await super().query(request)
        return replace(found, usage=(Usage("jar", cost_cents=Decimal("NaN")),))


WRONG: Sequence[tuple[type, str, dict[str, Any]]] = [
    (Deaf, "test_what_was_written_is_found_listed_and_read", {}),
    (Forgetful, "test_what_was_captured_can_be_found", {}),
    (Twice, "test_capturing_the_same_id_again_adds_nothing", {"mode": "capture_residue"}),
    (Keyless, "test_a_record_of_a_key_takes_the_place_of_the_one_before", {}),
    (Disordered, "test_records_of_one_call_have_a_handle_each_in_their_order", {}),
    (Misnamed, "test_handles_carry_the_providers_own_name", {}),
    (Inventive, "test_what_comes_back_of_a_record_is_what_was_given", {}),
    (Generous, "test_a_query_gives_no_more_than_was_asked_for_and_best_first", {"top_k": 3}),
    (WorstFirst, "test_a_query_finds_the_best_match_first", {}),
    (Fuzzy, "test_a_query_finds_the_best_match_first", {}),
    (OldestFirst, "test_pages_hold_everything_once_and_the_newest_first", {}),
    (ByOffset, "test_a_list_misses_and_repeats_nothing_while_others_write", {}),
    (Credulous, "test_a_cursor_of_nobodys_is_refused", {"cursor": "no cursor at all"}),
    (Unfiltered, "test_a_filter_on_metadata_lets_nothing_else_through", {}),
    (Raising, "test_what_never_was_is_none", {"record_id": "nothing"}),
    (AcrossCompanies, "test_nobody_reaches_what_is_behind_a_wall", {"wall": "space"}),
    (AcrossAgents, "test_nobody_reaches_what_is_behind_a_wall", {"wall": "agent"}),
    (AcrossSubjects, "test_nobody_reaches_what_is_behind_a_wall", {"wall": "subject"}),
    (AcrossNamespaces, "test_nobody_reaches_what_is_behind_a_wall", {"wall": "namespace"}),
    (ByHandleAlone, "test_nobody_reaches_what_is_behind_a_wall", {"wall": "agent"}),
    (Folding, "test_names_that_look_alike_are_two", {"wall": "agent", "alike": ("ana", "Ana")}),
    (ByRun, "test_runs_and_issues_come_and_go_without_losing_what_was_learned", {}),
    (Hiding, "test_what_was_forgotten_is_gone_by_every_way", {}),
    (Tombstoning, "test_what_was_forgotten_is_gone_by_every_way", {}),
    (Hiding, "test_forgetting_again_says_that_it_is_missing", {}),
    (Touchy, "test_what_is_missing_keeps_nothing_else_from_being_forgotten", {}),
    (Boastful, "test_a_correction_takes_the_place_of_what_it_corrects", {}),
    (Boastful, "test_what_is_not_there_cannot_be_corrected", {}),
    (Unsaid, "test_a_profile_is_short_and_of_nobody_else", {}),
    (Gossip, "test_a_profile_is_short_and_of_nobody_else", {}),
    (Opaque, "test_an_explanation_is_plain_data", {}),
    (Trimming, "test_texts_are_data_and_come_back_as_they_were", {"name": "spaces"}),
    (Cutting, "test_texts_are_data_and_come_back_as_they_were", {"name": "as long as may be"}),
    (Swallowing, "test_what_no_text_can_hold_is_refused_and_not_stored", {"text": "a\x00b"}),
    (Halfway, "test_what_no_text_can_hold_is_refused_and_not_stored", {"text": "a\x00b"}),
    (Losing, "test_many_at_once_lose_and_double_nothing", {}),
    (Stubborn, "test_a_caller_who_leaves_is_let_go_and_harms_nothing", {}),
    (OnceClosed, "test_closing_twice_is_closing_once_and_loses_nothing", {}),
    (Ephemeral, "test_closing_twice_is_closing_once_and_loses_nothing", {}),
    (Overcharging, "test_usage_can_be_reckoned_with", {}),
]


def held_to(kind: type, name: str, given: dict[str, Any]) -> None:
    jar: list[Any] = []

    async def opened() -> Any:
        return kind(jar)

    factory: Callable[[], Awaitable[Any]] = opened
    adapters: AdapterFactory = factory
    getattr(ProviderContract(), name)(adapters=adapters, **given)


@pytest.mark.parametrize(("kind", "name", "given"), WRONG, ids=lambda each: getattr(each, "__name__", None))
def test_an_adapter_that_is_wrong_is_caught(kind: type, name: str, given: dict[str, Any]) -> None:
    held_to(JarAdapter, name, given)
    with pytest.raises((AssertionError, KeyError, TypeError, pytest.fail.Exception)):
        held_to(kind, name, given)


def test_every_kind_of_promise_has_somebody_who_breaks_it() -> None:
    """Not covered: promises that only a provider that crashes on a name or a query would break."""
    known = {name for name, _ in inspect.getmembers(ProviderContract) if name.startswith("test_")}
    caught = {name for _, name, _ in WRONG}
    assert caught <= known
    assert len(caught) > len(known) / 2
