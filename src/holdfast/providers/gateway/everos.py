"""Client of EverOS's four routes, `{add,flush,search,get}` under its prefix.

They return only ids of derived episodes, and can neither read nor delete one by its id. So a record id is time and
episode id, and records are looked up by time. Forgetting uses `DELETE /memories/{id}`, which a Holdfast with EverOS's
API has; without that route, forgetting fails instead of claiming success.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from holdfast.domain.times import to_micros
from holdfast.errors import CapabilityUnavailable, InvalidCursor, ProviderMalformed
from holdfast.providers.gateway.transport import (
    NOT_FOUND,
    OutgoingMessage,
    RemoteRecord,
    ServiceConnection,
    is_key_reuse,
    moment_in,
    optional_text,
    parse_response,
    rows_in,
    score_in,
    text_in,
)

_MOST_ASKED = 100
_MOST_PAGES = 20
_NOT_THERE = (NOT_FOUND, 405, 501)


class EverosRoutes:
    """Implements `Service`."""

    corrects = False
    keeps_metadata = False
    seals_records = True

    def __init__(self, wire: ServiceConnection, prefix: str, user_id: str, project: str) -> None:
        self._wire = wire
        self._prefix = prefix
        self._user_id = user_id
        self._project = project

    def _app_fields(self, app: str) -> dict[str, str]:
        return {"app_id": app, "project_id": self._project}

    async def add(
        self, app: str, session: str, messages: list[OutgoingMessage], key: str | None
    ) -> list[str | None] | None:
        """Add messages, then look up their episodes by time: the route returns no ids."""
        items = [
            {"sender_id": self._user_id, "role": "user", "timestamp": each.millis, "content": each.text}
            for each in messages
        ]
        payload = {**self._app_fields(app), "session_id": session, "messages": items}
        reply = await self._wire.post(f"{self._prefix}/add", payload, key)
        if is_key_reuse(reply):
            return None
        _require_data(parse_response(reply))
        first, last = messages[0].millis, messages[-1].millis
        found = await self._fetch_all(app, {"session_id": session, "timestamp": {"gte": first, "lte": last}})
        known = {(_millis_of(each), each.text): each.id for each in found}
        return [known.get((each.millis, each.text)) for each in messages]

    async def flush(self, app: str, session: str) -> None:
        _require_data(
            parse_response(
                await self._wire.post(f"{self._prefix}/flush", {**self._app_fields(app), "session_id": session})
            )
        )

    async def search(self, app: str, query: str, top_k: int) -> list[RemoteRecord]:
        body = {"user_id": self._user_id, "query": query, "top_k": min(top_k, _MOST_ASKED)}
        answer = _require_data(
            parse_response(await self._wire.post(f"{self._prefix}/search", {**self._app_fields(app), **body}))
        )
        return [_to_record(row) for row in rows_in(answer, "episodes")]

    async def page(
        self, app: str, session: str | None, cursor: str | None, limit: int
    ) -> tuple[list[RemoteRecord], str | None]:
        """Page by time (keyset pagination), so that new records do not shift pages."""
        before, seen = (None, frozenset[str]()) if cursor is None else _decode_cursor(cursor)
        filters: dict[str, Any] = {} if session is None else {"session_id": session}
        if before is not None:
            filters["timestamp"] = {"lte": before}
        found: list[RemoteRecord] = []
        for number in range(1, _MOST_PAGES + 1):
            size = min(limit + len(seen) + 1, _MOST_ASKED)
            page = await self._fetch_page(app, filters, number, size)
            found += [each for each in page if each.id not in seen]
            if len(found) > limit or len(page) < size:
                break
        return found[:limit], _encode_cursor(found[:limit], seen, before) if len(found) > limit else None

    async def _fetch_all(self, app: str, filters: Mapping[str, Any]) -> list[RemoteRecord]:
        found: list[RemoteRecord] = []
        for number in range(1, _MOST_PAGES + 1):
            page = await self._fetch_page(app, filters, number, _MOST_ASKED)
            found += page
            if len(page) < _MOST_ASKED:
                break
        return found

    async def _fetch_page(self, app: str, filters: Mapping[str, Any], number: int, size: int) -> list[RemoteRecord]:
        body: dict[str, Any] = {
            **self._app_fields(app),
            "user_id": self._user_id,
            "memory_type": "episode",
            "page": number,
            "page_size": size,
            "sort_by": "timestamp",
            "sort_order": "desc",
        }
        if filters:
            body["filters"] = dict(filters)
        answer = _require_data(parse_response(await self._wire.post(f"{self._prefix}/get", body)))
        return [_to_record(row) for row in rows_in(answer, "episodes")]

    async def find(self, app: str, record_id: str) -> RemoteRecord | None:
        millis, _, own = record_id.partition(".")
        if not millis.isdecimal() or len(millis) > 14 or int(millis) < 1 or not own:
            return None
        found = await self._fetch_all(app, {"timestamp": {"eq": int(millis)}})
        return next((each for each in found if each.id == record_id), None)

    async def forget(self, app: str, record_id: str) -> bool:
        if await self.find(app, record_id) is None:
            return False
        own = record_id.partition(".")[2]
        reply = await self._wire.delete(f"/memories/{quote(own, safe='')}", self._app_fields(app))
        if reply.status not in _NOT_THERE:
            parse_response(reply)
            return True
        if await self.find(app, record_id) is None:
            # It was forgotten concurrently.
            return False
        raise CapabilityUnavailable(
            "this service cannot forget records: EverOS's API has no route for it, and DELETE /memories/{id} does not"
            " exist there; nothing was forgotten"
        )

    async def correct(self, app: str, record_id: str, text: str, reason: str | None) -> RemoteRecord:
        raise CapabilityUnavailable("EverOS's API cannot correct records; write a new record, and forget this one")

    async def close(self) -> None:
        await self._wire.close()


def _require_data(answer: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(data := answer.get("data"), dict):
        raise ProviderMalformed("the service's response has no `data` object")
    return data


def _to_record(row: Mapping[str, Any]) -> RemoteRecord:
    at = moment_in(row.get("timestamp"))
    if at is None:
        raise ProviderMalformed("the service returned an episode without its timestamp")
    return RemoteRecord(
        id=f"{to_micros(at) // 1_000}.{text_in(row, 'id')}",
        text=text_in(row, "episode"),
        session=optional_text(row, "session_id"),
        app=optional_text(row, "app_id"),
        at=at,
        score=score_in(row.get("score")),
    )


def _millis_of(found: RemoteRecord) -> int:
    return int(found.id.partition(".")[0])


def _encode_cursor(page: Sequence[RemoteRecord], seen: frozenset[str], before: int | None) -> str:
    """Encode the last record's time, and the ids already returned for that time."""
    last = _millis_of(page[-1])
    returned = [each.id for each in page if _millis_of(each) == last]
    if last == before:
        returned += seen
    return base64.urlsafe_b64encode(json.dumps([last, sorted(returned)]).encode()).decode()


def _decode_cursor(cursor: str) -> tuple[int, frozenset[str]]:
    try:
        before, seen = json.loads(base64.urlsafe_b64decode(cursor))
        return int(before), frozenset(map(str, seen))
    except (ValueError, TypeError, binascii.Error):
        raise InvalidCursor("cursor", "is malformed; pass on the `next_cursor` of a page unchanged") from None
