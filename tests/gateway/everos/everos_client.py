"""An EverOS client in raw HTTP: the request bodies from its documentation, with a bearer key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2
from served import MOMENT, Visitor

PREFIXES = ("/api/v2/memory", "/api/v1/memory")


@dataclass(frozen=True)
class EverosClient:
    visitor: Visitor
    prefix: str = PREFIXES[0]

    @property
    def user_id(self) -> str:
        return self.visitor.user_id

    def post(self, name: str, body: Any, **headers: str) -> httpx2.Response:
        sent = {**self.visitor.headers, **headers}
        return self.visitor.http.post(f"{self.prefix}/{name}", json=body, headers=sent)

    def done(self, name: str, body: Any, **headers: str) -> dict[str, Any]:
        """Post, and return the data of the response, which must be a success."""
        answer = self.post(name, body, **headers)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        assert answer.json().keys() == {"request_id", "data"}
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
        data: dict[str, Any] = answer.json()["data"]
        return data

    def said(self, text: Any, at: int = MOMENT, **more: Any) -> dict[str, Any]:
        return {"sender_id": self.user_id, "role": "user", "timestamp": at, "content": text, **more}

    def add(self, *texts: Any, session: str = "demo-1", at: int = MOMENT, **more: Any) -> dict[str, Any]:
        messages = [self.said(text, at + 10 * index) for index, text in enumerate(texts)]
        return self.done("add", {"session_id": session, "messages": messages, **more})

    def flush(self, session: str = "demo-1") -> str:
        status: str = self.done("flush", {"session_id": session})["status"]
        return status

    def search(self, query: str, **more: Any) -> dict[str, Any]:
        return self.done("search", {"user_id": self.user_id, "query": query, **more})

    def found(self, query: str, **more: Any) -> list[str]:
        return [each["episode"] for each in self.search(query, **more)["episodes"]]

    def get(self, **more: Any) -> dict[str, Any]:
        return self.done("get", {"user_id": self.user_id, "memory_type": "episode", **more})

    def listed(self, **more: Any) -> list[str]:
        return [each["episode"] for each in self.get(**more)["episodes"]]
