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

from holdfast.domain.checks import checked_text
from holdfast.domain.contract import (
    Capabilities,
    CaptureMode,
    CaptureRequest,
    CaptureResult,
    ContextBundle,
    CorrectResult,
    ForgetResult,
    Intent,
    ListPage,
    ListRequest,
    QueryRequest,
    RecordHandle,
    RecordWriteRequest,
    Snippet,
    SourceKind,
    WriteResult,
)
from holdfast.domain.contract_records import CaptureMetadata, captured_text, matches_metadata
from holdfast.domain.scope import Scope
from holdfast.errors import CapabilityUnavailable, Conflict, NotFound
from holdfast.providers.gateway import partition_mapping
from holdfast.providers.gateway.partition_mapping import RemotePartition
from holdfast.providers.gateway.transport import OutgoingMessage, RemoteMemoryService, RemoteRecord

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

    def __init__(self, service: RemoteMemoryService, user_id: str, app: str) -> None:
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
        text, place = captured_text(request.payload), partition_mapping.write_place(request.scope)
        noted = CaptureMetadata(request.source, None, {**request.payload.metadata, **request.metadata})
        message = self._build_message(request.scope, text, noted, self._message_millis(request))
        keep = request.mode is CaptureMode.RECORD
        session = (partition_mapping.record_session if keep else partition_mapping.capture_session)(
            place, request.scope
        )
        ids = await self._add_messages(place, session, [message], request.idempotency_id)
        if not keep or self._service.seals_records:
            await self._service.flush(self._app_of(place), session)
        return CaptureResult(_to_handles(place, ids))

    async def upsert_records(self, request: RecordWriteRequest) -> WriteResult:
        place = partition_mapping.write_place(request.scope)
        messages, keys = [], []
        for index, record in enumerate(request.records):
            checked_text(record.text, f"records[{index}].text")
            noted = CaptureMetadata(request.source, record.summary, record.metadata)
            messages.append(self._build_message(request.scope, record.text, noted, self._next_millis()))
            key = record.metadata.get("key")
            keys.append(key if isinstance(key, str) else None)
        found: list[str | None] = [None] * len(messages)
        plain = [index for index, key in enumerate(keys) if key is None]
        session = partition_mapping.record_session(place, request.scope)
        for chunk in _chunks(plain, messages):
            again = None if request.idempotency_id is None else f"{chunk[0]}/{request.idempotency_id}"
            added = await self._add_messages(place, session, [messages[index] for index in chunk], again)
            for index, known in zip(chunk, added, strict=True):
                found[index] = known
        if plain and self._service.seals_records:
            await self._service.flush(self._app_of(place), session)
        keyed = [
            (index, partition_mapping.key_session(place, request.scope, key))
            for index, key in enumerate(keys)
            if key is not None
        ]
        put = await _gather_limited(self._replace_record(place, session, messages[index]) for index, session in keyed)
        for (index, _), known in zip(keyed, put, strict=True):
            found[index] = known
        return WriteResult(_to_handles(place, found))

    async def _add_messages(
        self, place: RemotePartition, session: str, messages: list[OutgoingMessage], idempotency_id: str | None
    ) -> list[str | None]:
        app = self._app_of(place)
        key = (
            None
            if idempotency_id is None
            else partition_mapping.handle_id(place, partition_mapping.digest(session, idempotency_id))
        )
        ids = await self._service.add(app, session, messages, key)
        if ids is not None:
            return ids
        # The key was used before: find the messages of that request by their texts.
        there, _ = await self._service.page(app, session, None, _LOOKED_AT)
        known = {each.text: each.id for each in there if self._belongs_to(each, place)}
        if known and not any(message.text in known for message in messages):
            raise Conflict("idempotency_id: was used for another text; use a new id for each capture")
        return [known.get(message.text) for message in messages]

    async def _replace_record(self, place: RemotePartition, session: str, message: OutgoingMessage) -> str | None:
        """Replace the record of a key: add the new one before forgetting the old, so that there is always one."""
        app = self._app_of(place)
        async with self._keyed.setdefault(session, asyncio.Lock()):
            before, _ = await self._service.page(app, session, None, _LOOKED_AT)
            before = [each for each in before if self._belongs_to(each, place)]
            for same in before[:1]:
                if same.text == message.text and partition_mapping.unpack_metadata(
                    same.metadata
                ) == partition_mapping.unpack_metadata(message.metadata):
                    return same.id
            ids = await self._service.add(app, session, [message], None)
            if self._service.seals_records:
                await self._service.flush(app, session)
            await _gather_limited(self._service.forget(app, each.id) for each in before)
            return ids[0] if ids else None

    async def correct(self, handle: RecordHandle, text: str, scope: Scope, reason: str | None) -> CorrectResult:
        if not self._service.corrects:
            raise CapabilityUnavailable("this service cannot correct records; write a new record, and forget this one")
        checked_text(text, "text")
        found = self._locate(handle, (partition_mapping.write_place(scope),))
        if found is None:
            raise NotFound(f"there is no record {handle.record_id!r:.80} in this scope")
        place, own = found
        done = await self._service.correct(self._app_of(place), own, text, reason)
        new = RecordHandle(KEY, partition_mapping.handle_id(place, done.id))
        return CorrectResult(new, None if new == handle else handle)

    async def forget(self, handles: Sequence[RecordHandle], scope: Scope) -> ForgetResult:
        each = tuple(dict.fromkeys(handles))
        own = (partition_mapping.write_place(scope),)
        gone = await _gather_limited(self._forget_record(handle, own) for handle in each)
        return ForgetResult(
            tuple(handle for handle, done in zip(each, gone, strict=True) if done),
            tuple(handle for handle, done in zip(each, gone, strict=True) if not done),
        )

    async def _forget_record(self, handle: RecordHandle, within: tuple[RemotePartition, ...]) -> bool:
        found = self._locate(handle, within)
        return found is not None and await self._service.forget(self._app_of(found[0]), found[1])

    # --- reading ---

    async def query(self, request: QueryRequest) -> ContextBundle:
        self._check_filter(request.metadata_filter)
        many = _LOOKED_AT if request.metadata_filter else request.top_k
        is_floored = request.intent is Intent.AGENT_PREAMBLE and request.min_score is None
        read = partition_mapping.read_places(request.scope)
        answers = await asyncio.gather(
            *(self._service.search(self._app_of(place), request.query, many) for place in read)
        )
        found = [
            snippet
            for place, answer in zip(read, answers, strict=True)
            for each in answer
            if (each.relevant or not is_floored)
            and (snippet := self._to_snippet(each, place)) is not None
            and matches_metadata(snippet.metadata, request.metadata_filter)
        ]
        found.sort(key=lambda snippet: -(snippet.score or 0.0))
        return ContextBundle(tuple(found[: request.top_k]))

    async def list(self, request: ListRequest) -> ListPage:
        self._check_filter(request.metadata_filter)
        read = partition_mapping.read_places(request.scope)
        query = partition_mapping.query_digest(request.scope, request.metadata_filter)
        at, there = (
            (0, None) if request.cursor is None else partition_mapping.decode_cursor(request.cursor, query, len(read))
        )
        found: list[Snippet] = []
        for _ in range(_MOST_ASKED):
            # Request no more than fits: a page of the service cannot be used in part.
            page, there = await self._service.page(self._app_of(read[at]), None, there, request.limit - len(found))
            found += self._filter_page(page, read[at], request)
            if there is None:
                at += 1
            if at == len(read):
                return ListPage(tuple(found))
            if len(found) == request.limit:
                break
        return ListPage(tuple(found), partition_mapping.encode_cursor(query, at, there))

    def _filter_page(
        self, page: Iterable[RemoteRecord], place: RemotePartition, request: ListRequest
    ) -> Iterable[Snippet]:
        for each in page:
            snippet, session = self._to_snippet(each, place), partition_mapping.parse_session(each.session)
            if snippet is None or not matches_metadata(snippet.metadata, request.metadata_filter):
                continue
            # A record without a session belongs to no run, issue, project or conversation.
            within = session.within(request.scope) if session else _has_no_session_parts(request.scope)
            if within:
                yield snippet

    async def get(self, handle: RecordHandle, scope: Scope) -> Snippet | None:
        found = self._locate(handle, partition_mapping.read_places(scope))
        if found is None:
            return None
        place, own = found
        there = await self._service.find(self._app_of(place), own)
        return None if there is None else self._to_snippet(there, place)

    async def close(self) -> None:
        """Finish running calls and close the connections. Idempotent."""
        await self._service.close()

    # --- mapping ---

    def _app_of(self, place: RemotePartition) -> str:
        return f"{self._app}.{place.tag}"

    def _belongs_to(self, found: RemoteRecord, place: RemotePartition) -> bool:
        """True if the record belongs to this place: by its app, and by its session if that is one of ours."""
        session = partition_mapping.parse_session(found.session)
        if session is not None and session.tag != place.tag:
            return False
        if found.app is not None:
            return found.app == self._app_of(place)
        return session is not None

    def _to_snippet(self, found: RemoteRecord, place: RemotePartition) -> Snippet | None:
        """Convert a record; None if it does not belong to this place, whatever was requested."""
        if not self._belongs_to(found, place):
            return None
        scope, noted = partition_mapping.unpack_metadata(found.metadata)
        if scope is not None and (scope.partition, scope.namespace) != (place.partition, place.namespace):
            return None
        return Snippet(
            handle=RecordHandle(KEY, partition_mapping.handle_id(place, found.id)),
            text=found.text,
            score=found.score,
            summary=noted.summary,
            source=noted.source,
            scope=scope or place.scope,
            recorded_at=found.at,
            metadata=noted.metadata,
            sender=found.sender,
            role=found.role,
            said_at=None if found.role is None else found.at,
        )

    def _locate(self, handle: RecordHandle, within: tuple[RemotePartition, ...]) -> tuple[RemotePartition, str] | None:
        return None if handle.provider_key != KEY else partition_mapping.split_record_id(handle.record_id, within)

    def _build_message(self, scope: Scope, text: str, noted: CaptureMetadata, millis: int) -> OutgoingMessage:
        agent_said = noted.source is not None and noted.source.kind in _OUR_OWN_WORDS
        return OutgoingMessage(
            text=text,
            sender=(scope.agent or self._user_id) if agent_said else (scope.subject or scope.agent or self._user_id),
            role="assistant" if agent_said else "user",
            millis=millis,
            metadata=partition_mapping.pack_metadata(scope, noted) if self._service.keeps_metadata else {},
        )

    def _message_millis(self, request: CaptureRequest) -> int:
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


def _has_no_session_parts(scope: Scope) -> bool:
    return replace(scope, project=None, conversation=None, run=None, issue=None) == scope


def _to_handles(place: RemotePartition, ids: Iterable[str | None]) -> tuple[RecordHandle, ...]:
    return tuple(RecordHandle(KEY, partition_mapping.handle_id(place, known)) for known in ids if known is not None)


def _chunks(indexes: Iterable[int], messages: Sequence[OutgoingMessage]) -> list[list[int]]:
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


async def _gather_limited(work: Iterable[Any]) -> list[Any]:
    """Await all of it with limited concurrency, to spare the service a burst."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def run_limited(each: Any) -> Any:
        async with room:
            return await each

    return list(await asyncio.gather(*(run_limited(each) for each in work)))
