"""Client of the gateway's own `/memories` routes: those of seed 000, and those that read, correct and delete one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from holdfast.domain.secret import Secret
from holdfast.domain.transcript import Role
from holdfast.errors import NotFound, ProviderMalformed
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

_CHAT = "chat:"
_MOST_ASKED = 100


class GatewayRoutes:
    """Implements `Service`."""

    corrects = True
    seals_records = False

    def __init__(
        self, wire: ServiceConnection, user_id: str, key: Secret | None, project: str, *, keeps_metadata: bool
    ) -> None:
        self._wire = wire
        self._user_id = user_id
        self._key = key
        self._project = project
        self.keeps_metadata = keeps_metadata

    def _identity_fields(self, app: str) -> dict[str, Any]:
        """Return the identifying fields. The API takes the key in the body."""
        key = {} if self._key is None else {"user_key": self._key.revealed()}
        return {"user_id": self._user_id, **key, "app_id": app, "project_id": self._project}

    def _app_fields(self, app: str) -> dict[str, str]:
        return {"app_id": app, "project_id": self._project}

    async def add(
        self, app: str, session: str, messages: list[OutgoingMessage], key: str | None
    ) -> list[str | None] | None:
        payload = {
            **self._identity_fields(app),
            "session_id": f"{_CHAT}{session}",
            "messages": [self._message_body(message) for message in messages],
        }
        reply = await self._wire.post("/memories/add", payload, key)
        if is_key_reuse(reply):
            return None
        ids = parse_response(reply).get("message_ids")
        if not isinstance(ids, list) or len(ids) != len(messages):
            raise ProviderMalformed("the service did not return one id per added message")
        return [found if isinstance(found, str) else None for found in ids]

    def _message_body(self, message: OutgoingMessage) -> dict[str, Any]:
        fields = {
            "sender_id": message.sender,
            "role": message.role,
            "timestamp": message.millis,
            "content": message.text,
        }
        return {**fields, "metadata": dict(message.metadata)} if self.keeps_metadata and message.metadata else fields

    async def flush(self, app: str, session: str) -> None:
        parse_response(
            await self._wire.post("/memories/flush", {**self._identity_fields(app), "session_id": f"{_CHAT}{session}"})
        )

    async def search(self, app: str, query: str, top_k: int) -> list[RemoteRecord]:
        body = {"query": query, "scope": ["all_user_memory"], "top_k": min(top_k, _MOST_ASKED)}
        answer = parse_response(await self._wire.post("/memories/search", {**self._identity_fields(app), **body}))
        return [_to_search_record(row) for row in rows_in(answer, "results")]

    async def page(
        self, app: str, session: str | None, cursor: str | None, limit: int
    ) -> tuple[list[RemoteRecord], str | None]:
        query = {**self._app_fields(app), "limit": str(min(limit, _MOST_ASKED))}
        if session is not None:
            query["session_id"] = f"{_CHAT}{session}"
        if cursor is not None:
            query["cursor"] = cursor
        answer = parse_response(await self._wire.get("/memories", query))
        return [_to_record(row) for row in rows_in(answer, "memories")], optional_text(answer, "next_cursor")

    async def find(self, app: str, record_id: str) -> RemoteRecord | None:
        reply = await self._wire.get(f"/memories/{quote(record_id, safe='')}", self._app_fields(app))
        if reply.status == NOT_FOUND:
            return None
        row = parse_response(reply)
        # A superseded record counts as absent.
        return None if row.get("superseded_at") is not None else _to_record(row)

    async def forget(self, app: str, record_id: str) -> bool:
        reply = await self._wire.delete(f"/memories/{quote(record_id, safe='')}", self._app_fields(app))
        if reply.status == NOT_FOUND:
            return False
        parse_response(reply)
        return True

    async def correct(self, app: str, record_id: str, text: str, reason: str | None) -> RemoteRecord:
        body = {"text": text} if reason is None else {"text": text, "reason": reason}
        reply = await self._wire.patch(f"/memories/{quote(record_id, safe='')}", self._app_fields(app), body)
        if reply.status == NOT_FOUND:
            raise NotFound("there is no such record in this scope")
        return _to_record(parse_response(reply))

    async def close(self) -> None:
        await self._wire.close()


def _to_search_record(row: Mapping[str, Any]) -> RemoteRecord:
    raw = row.get("raw")
    more: Mapping[str, Any] = raw if isinstance(raw, dict) else {}
    return replace(
        _to_record({**row, "app_id": more.get("app_id"), "metadata": more.get("metadata")}),
        at=moment_in(more.get("timestamp")),
        score=score_in(row.get("score")),
        relevant=more.get("relevant") is not False,
    )


def _to_record(row: Mapping[str, Any]) -> RemoteRecord:
    return RemoteRecord(
        id=text_in(row, "id"),
        text=text_in(row, "text"),
        session=optional_text(row, "session_id"),
        app=optional_text(row, "app_id"),
        at=moment_in(row.get("recorded_at")),
        metadata=row.get("metadata"),
        sender=optional_text(row, "sender_id"),
        role=Role(row["role"]) if row.get("role") in list(Role) else None,
    )
