"""The adapter of the provider `gateway`: maps our records to messages of another service, and back.

A capture is added to its session and flushed, so that the service extracts from it; a record is added to a session that
is not flushed. Results that do not belong to the requested place are dropped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from holdfast.domain.capture_metadata import CaptureMetadata, captured_text, matches_metadata
from holdfast.domain.contract import (
    Capabilities,
    CaptureMode,
    CaptureRequest,
    CaptureResult,
    ContextBundle,
    CorrectResult,
    ForgetResult,
    ListPage,
    ListRequest,
    QueryRequest,
    RecordHandle,
    RecordWriteRequest,
    Snippet,
    SourceKind,
    WriteResult,
)
from holdfast.domain.scope import Scope
from holdfast.domain.text import checked_text
from holdfast.errors import CapabilityUnavailable, Conflict, NotFound
from holdfast.providers.gateway import places
from holdfast.providers.gateway.places import Place
from holdfast.providers.gateway.service import Found, NewMessage, Service

KEY = "gateway"
_OUR_OWN_WORDS = frozenset({SourceKind.RUN, SourceKind.ACTIVITY})
# Candidates to fetch if results are filtered afterwards.
_LOOKED_AT = 100
# Pages of the service to read for one page of ours.
_MOST_ASKED = 20
# The most text in one request, well below what services accept.
_CHUNK_CHARS = 250_000
_AT_ONCE = 8


class GatewayAdapter:
    """Implements `ports.Adapter`, and `correct` if the service supports it."""

    key = KEY

    def __init__(self, service: Service, user_id: str, app: str) -> None:
        self._service = service
        self._user_id = user_id
        self._app = app
        self.capabilities = Capabilities(
            correction=service.corrects, provider_managed_extraction=True, async_extraction=True
        )
        self._last_millis = 0
        # Writers of one key take turns: the previous record must be visible in order to be replaced.
        self._keyed: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # --- writing ---

    async def capture(self, request: CaptureRequest) -> CaptureResult:
        text, place = captured_text(request.payload), places.own_place(request.scope)
        noted = CaptureMetadata(request.source, None, {**request.payload.metadata, **request.metadata})
        message = self._message(request.scope, text, noted, self._moment(request))
        keep = request.mode is CaptureMode.RECORD
        session = (places.for_records if keep else places.for_captures)(place, request.scope)
        ids = await self._added(place, session, [message], request.idempotency_id)
        if not keep or self._service.seals_records:
            await self._service.flush(self._app_of(place), session)
        return CaptureResult(_handles(place, ids))

    async def upsert_records(self, request: RecordWriteRequest) -> WriteResult:
        place = places.own_place(request.scope)
        messages, keys = [], []
        for index, record in enumerate(request.records):
            checked_text(record.text, f"records[{index}].text")
            noted = CaptureMetadata(request.source, record.summary, record.metadata)
            messages.append(self._message(request.scope, record.text, noted, self._next_millis()))
            key = record.metadata.get("key")
            keys.append(key if isinstance(key, str) else None)
        found: list[str | None] = [None] * len(messages)
        plain = [index for index, key in enumerate(keys) if key is None]
        session = places.for_records(place, request.scope)
        for chunk in _chunks(plain, messages):
            again = None if request.idempotency_id is None else f"{chunk[0]}/{request.idempotency_id}"
            added = await self._added(place, session, [messages[index] for index in chunk], again)
            for index, known in zip(chunk, added, strict=True):
                found[index] = known
        if plain and self._service.seals_records:
            await self._service.flush(self._app_of(place), session)
        keyed = [
            (index, places.for_key(place, request.scope, key)) for index, key in enumerate(keys) if key is not None
        ]
        put = await _few_at_once(self._replaced(place, session, messages[index]) for index, session in keyed)
        for (index, _), known in zip(keyed, put, strict=True):
            found[index] = known
        return WriteResult(_handles(place, found))

    async def _added(
        self, place: Place, session: str, messages: list[NewMessage], idempotency_id: str | None
    ) -> list[str | None]:
        app = self._app_of(place)
        key = None if idempotency_id is None else places.handle_id(place, places.digest(session, idempotency_id))
        ids = await self._service.add(app, session, messages, key)
        if ids is not None:
            return ids
        # The key was used before: find the messages of that request by their texts.
        there, _ = await self._service.page(app, session, None, _LOOKED_AT)
        known = {each.text: each.id for each in there if self._is_of(each, place)}
        if known and not any(message.text in known for message in messages):
            raise Conflict("idempotency_id: was used for another text; use a new id for each capture")
        return [known.get(message.text) for message in messages]

    async def _replaced(self, place: Place, session: str, message: NewMessage) -> str | None:
        """Replace the record of a key: add the new one before forgetting the old, so that there is always one."""
        app = self._app_of(place)
        async with self._keyed.setdefault(session, asyncio.Lock()):
            before, _ = await self._service.page(app, session, None, _LOOKED_AT)
            before = [each for each in before if self._is_of(each, place)]
            for same in before[:1]:
                if same.text == message.text and places.opened(same.metadata) == places.opened(message.metadata):
                    return same.id
            ids = await self._service.add(app, session, [message], None)
            if self._service.seals_records:
                await self._service.flush(app, session)
            await _few_at_once(self._service.forget(app, each.id) for each in before)
            return ids[0] if ids else None

    async def correct(self, handle: RecordHandle, text: str, scope: Scope, reason: str | None) -> CorrectResult:
        if not self._service.corrects:
            raise CapabilityUnavailable("this service cannot correct records; write a new record, and forget this one")
        checked_text(text, "text")
        found = self._whose(handle, (places.own_place(scope),))
        if found is None:
            raise NotFound(f"there is no record {handle.record_id!r:.80} in this scope")
        place, own = found
        done = await self._service.correct(self._app_of(place), own, text, reason)
        new = RecordHandle(KEY, places.handle_id(place, done.id))
        return CorrectResult(new, None if new == handle else handle)

    async def forget(self, handles: Sequence[RecordHandle], scope: Scope) -> ForgetResult:
        each = tuple(dict.fromkeys(handles))
        own = (places.own_place(scope),)
        gone = await _few_at_once(self._gone(handle, own) for handle in each)
        return ForgetResult(
            tuple(handle for handle, done in zip(each, gone, strict=True) if done),
            tuple(handle for handle, done in zip(each, gone, strict=True) if not done),
        )

    async def _gone(self, handle: RecordHandle, within: tuple[Place, ...]) -> bool:
        found = self._whose(handle, within)
        return found is not None and await self._service.forget(self._app_of(found[0]), found[1])

    # --- reading ---

    async def query(self, request: QueryRequest) -> ContextBundle:
        self._check_filter(request.metadata_filter)
        many = _LOOKED_AT if request.metadata_filter else request.top_k
        read = places.places_read(request.scope)
        answers = await asyncio.gather(
            *(self._service.search(self._app_of(place), request.query, many) for place in read)
        )
        found = [
            snippet
            for place, answer in zip(read, answers, strict=True)
            for each in answer
            if (snippet := self._snippet(each, place)) is not None
            and matches_metadata(snippet.metadata, request.metadata_filter)
        ]
        found.sort(key=lambda snippet: -(snippet.score or 0.0))
        return ContextBundle(tuple(found[: request.top_k]))

    async def list(self, request: ListRequest) -> ListPage:
        self._check_filter(request.metadata_filter)
        read = places.places_read(request.scope)
        query = places.query_of(request.scope, request.metadata_filter)
        at, there = (0, None) if request.cursor is None else places.cursor_from(request.cursor, query, len(read))
        found: list[Snippet] = []
        for _ in range(_MOST_ASKED):
            # Request no more than fits: a page of the service cannot be used in part.
            page, there = await self._service.page(self._app_of(read[at]), None, there, request.limit - len(found))
            found += self._wanted(page, read[at], request)
            if there is None:
                at += 1
            if at == len(read):
                return ListPage(tuple(found))
            if len(found) == request.limit:
                break
        return ListPage(tuple(found), places.cursor_for(query, at, there))

    def _wanted(self, page: Iterable[Found], place: Place, request: ListRequest) -> Iterable[Snippet]:
        for each in page:
            snippet, session = self._snippet(each, place), places.session_from(each.session)
            if snippet is None or not matches_metadata(snippet.metadata, request.metadata_filter):
                continue
            # A record without a session belongs to no run, issue, project or conversation.
            within = session.within(request.scope) if session else _names_none(request.scope)
            if within:
                yield snippet

    async def get(self, handle: RecordHandle, scope: Scope) -> Snippet | None:
        found = self._whose(handle, places.places_read(scope))
        if found is None:
            return None
        place, own = found
        there = await self._service.find(self._app_of(place), own)
        return None if there is None else self._snippet(there, place)

    async def close(self) -> None:
        """Finish running calls and close the connections. Idempotent."""
        await self._service.close()

    # --- mapping ---

    def _app_of(self, place: Place) -> str:
        return f"{self._app}.{place.tag}"

    def _is_of(self, found: Found, place: Place) -> bool:
        """True if the record belongs to this place: by its app, and by its session if that is one of ours."""
        session = places.session_from(found.session)
        if session is not None and session.tag != place.tag:
            return False
        if found.app is not None:
            return found.app == self._app_of(place)
        return session is not None

    def _snippet(self, found: Found, place: Place) -> Snippet | None:
        """Convert a record; None if it does not belong to this place, whatever was requested."""
        if not self._is_of(found, place):
            return None
        scope, noted = places.opened(found.metadata)
        if scope is not None and (scope.partition, scope.namespace) != (place.partition, place.namespace):
            return None
        return Snippet(
            handle=RecordHandle(KEY, places.handle_id(place, found.id)),
            text=found.text,
            score=found.score,
            summary=noted.summary,
            source=noted.source,
            scope=scope or place.scope,
            recorded_at=found.at,
            metadata=noted.metadata,
        )

    def _whose(self, handle: RecordHandle, within: tuple[Place, ...]) -> tuple[Place, str] | None:
        return None if handle.provider_key != KEY else places.parts_of(handle.record_id, within)

    def _message(self, scope: Scope, text: str, noted: CaptureMetadata, millis: int) -> NewMessage:
        agent_said = noted.source is not None and noted.source.kind in _OUR_OWN_WORDS
        return NewMessage(
            text=text,
            sender=(scope.agent or self._user_id) if agent_said else (scope.subject or scope.agent or self._user_id),
            role="assistant" if agent_said else "user",
            millis=millis,
            metadata=places.enveloped(scope, noted) if self._service.keeps_metadata else {},
        )

    def _moment(self, request: CaptureRequest) -> int:
        """Return the hook's trigger time, so that a repeated delivery is byte-identical; without a hook, now."""
        if request.hook is None:
            return self._next_millis()
        return int(request.hook.triggered_at.timestamp() * 1_000)

    def _next_millis(self) -> int:
        """Return the current time, unique and increasing, so that messages can be told apart by it."""
        self._last_millis = max(self._last_millis + 1, int(time.time() * 1_000))
        return self._last_millis

    def _check_filter(self, metadata_filter: Mapping[str, Any]) -> None:
        if metadata_filter and not self._service.keeps_metadata:
            raise CapabilityUnavailable("this service stores no metadata to filter by; leave the metadata filter out")


def _names_none(scope: Scope) -> bool:
    return replace(scope, project=None, conversation=None, run=None, issue=None) == scope


def _handles(place: Place, ids: Iterable[str | None]) -> tuple[RecordHandle, ...]:
    return tuple(RecordHandle(KEY, places.handle_id(place, known)) for known in ids if known is not None)


def _chunks(indexes: Iterable[int], messages: Sequence[NewMessage]) -> list[list[int]]:
    """Split the messages into requests of limited size."""
    chunks: list[list[int]] = []
    room = 0
    for index in indexes:
        message = messages[index]
        size = len(message.text) + sum(map(len, message.metadata.values()))
        if not chunks or size > room:
            chunks.append([])
            room = _CHUNK_CHARS
        chunks[-1].append(index)
        room -= size
    return chunks


async def _few_at_once(work: Iterable[Any]) -> list[Any]:
    """Await all of it with limited concurrency, to spare the service a burst."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def run_limited(each: Any) -> Any:
        async with room:
            return await each

    return list(await asyncio.gather(*(run_limited(each) for each in work)))
