"""The Memory Gateway's client for agents: `search` before a run, `add` and `flush` after it.

Payloads are exactly those of the gateway's contract, including the key. `add` and `flush` are never sent twice: if the
first call succeeded and its answer was lost, a turn would be stored twice. `search` is repeated only if `retries` says
so, within the same deadline. A failure is a `GatewayError` that names the call and its outcome, and nothing of what was
sent or answered.
"""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Any, ClassVar, Concatenate, NoReturn, ParamSpec, Self, TypeVar

from holdfast.client.transport import Body, HttpReply, HttpTransport, NoResponse
from holdfast.domain.checks import checked_real, checked_seconds, checked_whole
from holdfast.domain.location import checked_url
from holdfast.domain.scope import check_part
from holdfast.domain.secret import Secret
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.loops import Portal
from holdfast.settings import read_gateway_client_settings

P = ParamSpec("P")
R = TypeVar("R")
SCOPES = ("current_chat", "resources", "all_user_memory")
DEFAULT_SCOPE = ("current_chat", "resources")
DEFAULT_TOP_K = 8
MAX_TOP_K = 100
MAX_RETRIES = 10
_FIRST_WAIT_SECONDS = 0.2
_CHAT = "chat:"
# A hundred results of some pages each. Anything larger is not a valid answer.
_MAX_ANSWER_BYTES = 2_000_000
# Parsing a million empty lists would take longer than some deadlines.
_MAX_ANSWER_PARTS = 200_000


class Category(StrEnum):
    """The outcome of a failed call."""

    UNREACHABLE = "unreachable"  # nothing was sent
    LOST = "lost"  # sent, and no answer came: the outcome is unknown
    UNAUTHORIZED = "unauthorized"
    LIMITED = "limited"  # too many requests; nothing was done
    REFUSED = "refused"
    FAILED = "failed"  # an error of the gateway itself
    MALFORMED = "malformed"  # not a valid answer


_PASSING = frozenset({Category.UNREACHABLE, Category.LOST, Category.LIMITED, Category.FAILED})


class GatewayError(HoldfastError):
    """A call to the gateway failed. The error holds no key, no body, and nothing that was answered."""

    code: ClassVar[str] = "gateway_error"

    def __init__(self, operation: str, path: str, status: int | None, category: Category) -> None:
        ended = category if status is None else f"{category}, status {status}"
        super().__init__(f"{operation} at {path}: {ended}")
        self.operation = operation
        self.path = path
        self.status = status
        self.category = category

    def __reduce__(self) -> tuple[type[GatewayError], tuple[str, str, int | None, Category]]:
        return type(self), (self.operation, self.path, self.status, self.category)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a turn; `timestamp` in milliseconds since 1970, UTC."""

    sender_id: str
    role: str
    timestamp: int
    content: str

    def __post_init__(self) -> None:
        for name in ("sender_id", "role", "content"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise InvalidInput(name, "expected text that is not empty")
        checked_whole(self.timestamp, "timestamp", 1, 10**15)


@dataclass(frozen=True, slots=True)
class GatewayHit:
    """A search result. `raw` is the gateway's other data about it; it is not for a model."""

    id: str | None
    session_id: str | None
    text: str | None
    score: float | None
    source_scope: str | None
    resource_uri: str | None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class GatewayReceipt:
    """The answer to `add` or `flush`."""

    session_id: str
    status: str | None
    message_count: int | None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


class GatewayClient:
    """One user's memory behind a gateway."""

    def __init__(
        self,
        base_url: str,
        user_id: str,
        user_key: str | Secret,
        *,
        app_id: str = "default",
        project_id: str = "default",
        timeout_seconds: float = 10.0,
        retries: int = 0,
    ) -> None:
        """`timeout_seconds` bounds each call in total. `retries` is the number of retries of a failed search."""
        for name, value in (("user_id", user_id), ("app_id", app_id), ("project_id", project_id)):
            check_part(name, value)
        self._key = user_key if isinstance(user_key, Secret) else Secret(user_key, "user_key")
        self._retries = checked_whole(retries, "retries", 0, MAX_RETRIES)
        self._who = {"user_id": user_id}
        self._where = {"app_id": app_id, "project_id": project_id}
        seconds = checked_seconds(timeout_seconds, "timeout_seconds")
        # The contract puts the key into the body, so the transport gets none.
        self._line = HttpTransport(checked_url(base_url, "base_url"), None, seconds, max_answer_bytes=_MAX_ANSWER_BYTES)

    @classmethod
    def from_env(cls, *, app_id: str = "default", project_id: str = "default", retries: int = 0) -> Self:
        """Read MEMORY_GATEWAY_BASE_URL, _USER_ID, _USER_KEY and _TIMEOUT_SECONDS."""
        settings = read_gateway_client_settings()
        return cls(
            settings.base_url,
            settings.user_id,
            Secret(settings.user_key.get_secret_value(), "MEMORY_GATEWAY_USER_KEY"),
            app_id=app_id,
            project_id=project_id,
            timeout_seconds=settings.timeout_seconds,
            retries=retries,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._line.url!r}, {self._who['user_id']!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a gateway client holds connections and a key; do not pickle it, make a new one instead")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def search(
        self,
        conversation_id: str,
        query: str,
        *,
        scope: Iterable[str] = DEFAULT_SCOPE,
        top_k: int = DEFAULT_TOP_K,
        method: str | None = None,
        radius: float | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> tuple[GatewayHit, ...]:
        """Search the conversation, resources, or all of the user's memory."""
        check_part("conversation_id", conversation_id)
        payload = {
            "conversation_id": conversation_id,
            "query": query,
            "scope": _scopes(scope),
            "top_k": checked_whole(top_k, "top_k", 1, MAX_TOP_K),
            **self._where,
        }
        further = {"method": method, "radius": radius, "filters": filters}
        payload |= {name: value for name, value in further.items() if value is not None}
        answer = await self._call_with_retries("search", "/memories/search", payload)
        results = answer.get("results")
        # A gateway may send more than `top_k`.
        hits = results[:top_k] if isinstance(results, list) else None
        if hits is None or not all(isinstance(result, dict) for result in hits):
            raise GatewayError("search", "/memories/search", 200, Category.MALFORMED)
        return tuple(_to_hit(result) for result in hits)

    async def add(self, conversation_id: str, messages: Iterable[ChatMessage]) -> GatewayReceipt:
        """Add one turn. Sent exactly once, never retried."""
        return await self._send_write("add", conversation_id, {"messages": _encode_messages(messages)})

    async def flush(self, conversation_id: str) -> GatewayReceipt:
        """Have the gateway process what was added. Sent exactly once, never retried."""
        return await self._send_write("flush", conversation_id, {})

    async def close(self) -> None:
        """Wait for calls in progress, and close the connections."""
        await self._line.close()

    async def _send_write(self, operation: str, conversation_id: str, more: dict[str, Any]) -> GatewayReceipt:
        check_part("conversation_id", conversation_id)
        payload = {"session_id": f"{_CHAT}{conversation_id}", **self._where, **more}
        answer = await self._call(operation, f"/memories/{operation}", payload, self._line.timeout_seconds)
        status, count = answer.get("status"), answer.get("message_count")
        return GatewayReceipt(
            session_id=payload["session_id"],
            status=status if isinstance(status, str) else None,
            message_count=count if isinstance(count, int) and not isinstance(count, bool) else None,
            raw=answer,
        )

    async def _call_with_retries(self, operation: str, path: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Call with retries; only for calls that change nothing. All attempts share one deadline."""
        until = time.monotonic() + self._line.timeout_seconds
        for attempt in range(self._retries):
            try:
                return await self._call(operation, path, payload, until - time.monotonic())
            except GatewayError as error:
                wait = _FIRST_WAIT_SECONDS * 2**attempt
                if error.category not in _PASSING or time.monotonic() + wait >= until:
                    raise
            await asyncio.sleep(wait)
        return await self._call(operation, path, payload, max(until - time.monotonic(), 0.001))

    async def _call(self, operation: str, path: str, payload: dict[str, Any], seconds: float) -> dict[str, Any]:
        try:
            reply = await self._line.call("POST", path, self._body(payload), timeout_seconds=seconds)
        except NoResponse as lost:
            failure = GatewayError(operation, path, None, Category.LOST if lost.sent else Category.UNREACHABLE)
        else:
            answer = _answer(reply)
            if answer is not None:
                return answer
            failure = GatewayError(operation, path, reply.status, _category(reply.status))
        # Raised outside `except`, so that the exception chain holds nothing of the request.
        raise failure

    def _body(self, payload: dict[str, Any]) -> Body:
        try:
            return Body(
                json.dumps({**self._who, "user_key": self._key.revealed(), **payload}, allow_nan=False).encode()
            )
        except (TypeError, ValueError):
            problem = "holds a value that cannot be written as JSON"
        raise InvalidInput("request", problem)


def _answer(reply: HttpReply) -> dict[str, Any] | None:
    if not 200 <= reply.status < 300 or sum(map(reply.body.count, (b"[", b"{", b","))) > _MAX_ANSWER_PARTS:
        return None
    try:
        found = json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _category(status: int) -> Category:
    if 200 <= status < 300:
        return Category.MALFORMED
    known = {401: Category.UNAUTHORIZED, 403: Category.UNAUTHORIZED, 429: Category.LIMITED}
    return known.get(status) or (Category.FAILED if status >= 500 else Category.REFUSED)


def _scopes(scope: Iterable[str]) -> list[str]:
    names = [scope] if isinstance(scope, str) else list(scope)
    if not names or not all(name in SCOPES for name in names):
        raise InvalidInput("scope", f"must be one or more of {', '.join(SCOPES)}")
    return list(dict.fromkeys(names))


def _encode_messages(messages: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    turn = list(messages)
    if not turn or not all(isinstance(message, ChatMessage) for message in turn):
        raise InvalidInput("messages", "expected at least one ChatMessage")
    for index in range(1, len(turn)):
        if turn[index].timestamp < turn[index - 1].timestamp:
            raise InvalidInput(f"messages[{index}].timestamp", "is earlier than the one before; give them in order")
    return [asdict(each) for each in turn]


def _to_hit(result: dict[str, Any]) -> GatewayHit:
    texts = {name: result.get(name) for name in ("id", "session_id", "text", "source_scope", "resource_uri")}
    raw = result.get("raw")
    return GatewayHit(
        **{name: value if isinstance(value, str) else None for name, value in texts.items()},
        score=_score(result.get("score")),
        raw=raw if isinstance(raw, dict) else {},
    )


def _score(value: object) -> float | None:
    try:
        return float(checked_real(value, "score"))
    except InvalidInput:
        return None


def _blocking(
    method: Callable[Concatenate[GatewayClient, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[BlockingGatewayClient, P], R]:
    def call(self: BlockingGatewayClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._portal.run(method(self._client, *args, **kwargs))

    functools.update_wrapper(call, method)
    return call


class BlockingGatewayClient:
    """The blocking form of the client: `BlockingGatewayClient(GatewayClient.from_env())`."""

    def __init__(self, client: GatewayClient) -> None:
        self._client = client
        self._portal = Portal()

    def __repr__(self) -> str:
        return f"Blocking{self._client!r}"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a gateway client holds connections and a key; do not pickle it, make a new one instead")

    @classmethod
    def from_env(cls, *, app_id: str = "default", project_id: str = "default", retries: int = 0) -> Self:
        """Read the same variables as `GatewayClient.from_env`."""
        return cls(GatewayClient.from_env(app_id=app_id, project_id=project_id, retries=retries))

    search = _blocking(GatewayClient.search)
    add = _blocking(GatewayClient.add)
    flush = _blocking(GatewayClient.flush)

    def close(self) -> None:
        """Wait for calls in progress, and close the connections. Idempotent."""
        if not self._portal.is_closed:
            self._portal.run(self._client.close())
            self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
