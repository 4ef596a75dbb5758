"""Callers and routes of a company's memory over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2
from served import Gateway


@dataclass(frozen=True)
class Somebody:
    """A caller, with or without a key, of one company's routes."""

    http: httpx2.Client
    company: str
    key: str | None

    def __call__(self, method: str, path: str, headers: dict[str, str] | None = None, **sent: Any) -> httpx2.Response:
        signed = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        return self.http.request(
            method, f"/companies/{self.company}/memory{path}", headers={**signed, **(headers or {})}, **sent
        )

    def get(self, path: str, expected: int = 200, **asked: Any) -> Any:
        return told(self("GET", path, params=asked), expected)

    def post(self, path: str, status: int = 200, headers: dict[str, str] | None = None, **given: Any) -> Any:
        return told(self("POST", path, headers, json=given), status)

    def put(self, path: str, status: int = 200, **given: Any) -> Any:
        return told(self("PUT", path, json=given), status)

    def patch(self, path: str, status: int = 200, headers: dict[str, str] | None = None, **given: Any) -> Any:
        return told(self("PATCH", path, headers, json=given), status)

    def delete(self, path: str, status: int = 204, **asked: Any) -> Any:
        return told(self("DELETE", path, params=asked), status)


def told(answer: httpx2.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


@dataclass(frozen=True)
class Company:
    gateway: Gateway
    name: str

    @property
    def operator(self) -> Somebody:
        """The unrestricted operator of the service."""
        return Somebody(self.gateway.http, self.name, self.gateway.token)

    @property
    def nobody(self) -> Somebody:
        return Somebody(self.gateway.http, self.name, None)

    def somebody(self, kind: str, name: str, **more: Any) -> Somebody:
        """A new user, agent or operator of the company, with its own key."""
        made = self.operator.post("/credentials", 201, kind=kind, id=name, **more)
        return Somebody(self.gateway.http, self.name, made["key"])

    def of(self, other: str, who: Somebody) -> Somebody:
        """A caller of this company, at another company's routes."""
        return Somebody(self.gateway.http, other, who.key)


def fields_of(problem: Any) -> list[str]:
    return [each["field"] for each in problem["errors"]]
