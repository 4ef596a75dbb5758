"""Mixed load: every kind of call that users of a gateway make, over many users with memories of very different sizes.

The mix is drawn from a seed. A caller waits for its answer, so at most `callers` requests are open at once.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.engine.corpus import Corpus
from bench.gateway.load import Ask, Line

MOMENT = 1_780_000_000_000
BATCH = 250  # messages of one request while users are filled
_SESSIONS = 12
_BOUNDARY = "of-the-mixed-load"
# Share of each kind of call.
MIX = {
    "search": 34, "verb_search": 8, "hydrate": 6, "add": 20, "batch": 1, "flush": 6, "list": 8, "get": 6, "correct": 1,
    "forget": 2, "upload": 3, "read_page": 1, "sign_up": 1, "unknown_key": 3,
}  # fmt: skip
# What a call of the mix may be answered with. An id may have been forgotten by another call meanwhile.
EXPECTED = {"unknown_key": {401}, "get": {200, 404}, "correct": {200, 404, 409, 412}, "forget": {200, 404, 409},
            "sign_up": {201}, "upload": {200, 201}, "read_page": {200, 201}}  # fmt: skip


@dataclass
class User:
    name: str
    key: str
    ids: list[str] = field(default_factory=list)

    @property
    def scope(self) -> dict[str, str]:
        return {"space": "default", "app": "default", "project": "default", "subject": self.name}


@dataclass
class Tally:
    """Answers by kind and status; those that nobody expects are kept with their beginning."""

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)

    def add(self, kind: str, status: int, content: bytes) -> None:
        self.answers[kind, status] += 1
        if status not in EXPECTED.get(kind, {200}) and len(self.unexpected) < 20:
            self.unexpected.append(f"{kind}: {status} {content[:200].decode('utf-8', 'replace')}")


class MixedLoad:
    """Signs users up, fills them, and then calls at a steady rate until a time."""

    def __init__(self, port: int, token: str, seed: int = 1) -> None:
        self.tally = Tally()
        self.users: list[User] = []
        self._port, self._token = port, token
        self._chance, self._corpus = random.Random(seed), Corpus(seed)
        self._count = 0

    async def fill(self, users: int, records: int) -> None:
        """Sign up users and give them that many records in all; the first has the most, as in real services."""
        line = Line(self._port)
        shares = [1 / (rank + 2) ** 0.8 for rank in range(users)]
        for share in shares:
            user = await self._sign_up(line)
            left = max(5, int(records * share / sum(shares)))
            while left > 0:
                await self._send(line, "fill", self._add(user, min(BATCH, left)))
                left -= BATCH
        line.close()

    async def run(self, rate: float, callers: int, until: float) -> None:
        await asyncio.gather(*(self._call(rate / callers, until) for _ in range(callers)))

    async def _call(self, rate: float, until: float) -> None:
        line = Line(self._port)
        due = time.monotonic() + self._chance.random() / rate
        while due < until:
            # A caller that is late because the service was does not catch up by a burst.
            due = max(due + self._chance.expovariate(rate), time.monotonic())
            await asyncio.sleep(due - time.monotonic())
            await self._one(line)
        line.close()

    async def _one(self, line: Line) -> None:
        kind = self._chance.choices(list(MIX), list(MIX.values()))[0]
        # Few users make most of the calls.
        user = self.users[int(len(self.users) * self._chance.random() ** 2)]
        if kind == "sign_up":
            await self._sign_up(line)
        elif kind == "forget":
            await self._forget(line, user)
        else:
            content = await self._send(line, kind, self._ask(kind, user))
            if kind == "list" and content:
                user.ids = [each["id"] for each in json.loads(content)["memories"]]

    def _ask(self, kind: str, user: User) -> Ask:
        chance, key = self._chance, user.key
        record = chance.choice(user.ids) if user.ids else "msg_unknown"
        match kind:
            case "search":
                scope = chance.choice((["all_user_memory"], ["all_user_memory", "resources"], ["resources"]))
                return Ask.post("/memories/search", key, {"query": self._query(), "scope": scope})
            case "verb_search" | "hydrate":
                return Ask.post(
                    f"/verbs/{kind.removeprefix('verb_')}", key, {"scope": user.scope, "query": self._query()}
                )
            case "add":
                return self._add(user, chance.randint(1, 6))
            case "batch":
                return self._add(user, 100)
            case "flush":
                return Ask.post("/memories/flush", key, {"session_id": f"chat:{chance.randrange(_SESSIONS)}"})
            case "list":
                return Ask.of("GET", "/memories?limit=50", key)
            case "get":
                return Ask.of("GET", f"/memories/{record}", key)
            case "correct":
                return Ask.of("PATCH", f"/memories/{record}", key, json.dumps({"text": self._corpus.text()}).encode())
            case "unknown_key":
                return Ask.post("/memories/search", f"uk_{chance.getrandbits(128):x}", {"query": self._query()})
        text = "\n\n".join(self._corpus.texts(chance.randint(20, 400)))
        name, media_type = ("notes.txt", "text/plain") if kind == "upload" else ("page.html", "text/html")
        return self._upload(user, name, media_type, f"{self._next()} {text}")

    def _add(self, user: User, messages: int) -> Ask:
        session = self._chance.randrange(_SESSIONS)
        said: list[dict[str, Any]] = []
        for text in self._corpus.texts(messages):
            at = MOMENT + 1_000 * self._next()
            role = ("user", "assistant")[at // 1_000 % 2]
            said.append({"sender_id": user.name, "role": role, "timestamp": at, "content": f"{text} {at}"})
        return Ask.post("/memories/add", user.key, {"session_id": f"chat:{session}", "messages": said})

    def _upload(self, user: User, name: str, media_type: str, text: str) -> Ask:
        parts = [
            f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
            for field, value in (("user_id", user.name), ("user_key", user.key))
        ]
        file = f'Content-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: {media_type}'
        content = f"{''.join(parts)}--{_BOUNDARY}\r\n{file}\r\n\r\n{text}\r\n--{_BOUNDARY}--\r\n"
        return Ask.of("POST", "/resources", user.key, content.encode(), f"multipart/form-data; boundary={_BOUNDARY}")

    async def _forget(self, line: Line, user: User) -> None:
        target = {"ids": self._some(user.ids, 3)} if user.ids else {"session_id": "chat:1"}
        content = await self._send(line, "forget", Ask.post("/memories/forget", user.key, target))
        if token := json.loads(content or b"{}").get("token"):
            await self._send(line, "forget", Ask.post("/memories/forget", user.key, {**target, "token": token}))

    def _some(self, ids: Sequence[str], count: int) -> list[str]:
        return self._chance.sample(ids, min(count, len(ids)))

    async def _sign_up(self, line: Line) -> User:
        name = f"user-{self._next()}"
        content = await self._send(line, "sign_up", Ask.post("/users", self._token, {"user_id": name}))
        user = User(name, json.loads(content)["user_key"])
        self.users.append(user)
        return user

    async def _send(self, line: Line, kind: str, ask: Ask) -> bytes:
        status, content = await line.exchange(ask)
        self.tally.add(kind, status, content)
        return content

    def _query(self) -> str:
        return self._corpus.queries(1)[0]

    def _next(self) -> int:
        self._count += 1
        return self._count
