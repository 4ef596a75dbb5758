"""A memory behind a server: the service port over HTTP, so that the library is the same as on a store.

Verbs are built here, as they are in process: an invalid one is refused before anything is sent. The server identifies
the caller by the key. Nothing is ever sent twice. If a call got no answer, its error says whether it may be repeated:
`StoreUnavailable` if it had no effect, `OutcomeUnknown` if it may have had one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from pydantic_core import from_json

from holdfast.client.transport import HttpReply, HttpTransport, NoResponse, Sending
from holdfast.domain.access import Action, Actor
from holdfast.domain.location import redact_location
from holdfast.domain.secret import Secret
from holdfast.errors import (
    AccessDenied,
    HoldfastError,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
    Unauthenticated,
)
from holdfast.ports import Verb
from holdfast.runtime.idempotency import check_key
from holdfast.wire import GREETING, AnyRequest, Greeting, decode_error, wire_verb

T = TypeVar("T")
# The time for maintenance grows with the store.
_UPKEEP = frozenset({Action.VERIFY, Action.REBUILD, Action.WORK})
_UPKEEP_SECONDS = 3_600.0
_SAID_CHARS = 300


class RemoteService:
    """Implements `ports.Service`."""

    sync_safe = False

    def __init__(self, url: str, key: Secret | None, timeout_seconds: float, sending: Sending | None = None) -> None:
        self._line = HttpTransport(url, key, timeout_seconds, sending)
        self._spoken: frozenset[str] | None = None

    def __repr__(self) -> str:
        return f"RemoteService({self.origin})"

    @property
    def origin(self) -> str:
        return f"{redact_location(self._line.url)!r}"

    async def fetch_greeting(self) -> Greeting:
        """Ask the server who we are, and which verbs it has."""
        try:
            reply = await self._reply("GET", "/verbs", None, writes=False, hint="")
        except NotFound:
            raise StoreUnusable(f"{self._line.url} is not a Holdfast server, or one without verbs") from None
        greeting = cast(Greeting, self._read(reply, GREETING.decode, writes=False))
        self._spoken = frozenset(greeting.verbs)
        return greeting

    async def perform(self, actor: Actor, action: Action, make: Callable[[], Verb[T]], *, space: str) -> T:
        """Send a verb. The server decides both `actor`, by the key, and `space`, by the verb's scope."""
        verb = make()
        spoken = wire_verb(cast(AnyRequest, verb))
        if self._spoken is not None and spoken.name not in self._spoken:
            raise StoreUnusable(
                f"the server at {self._line.url} has another version and cannot {spoken.name}; update it"
            )
        key = getattr(verb, "idempotency_key", None)
        check_key(key)  # like the gate, before anything is sent
        body, hint = spoken.request.encode(verb), _hint(key)
        reply = await self._reply("POST", f"/verbs/{spoken.name}", body, writes=spoken.writes, hint=hint, action=action)
        return cast(T, self._read(reply, spoken.answer.decode, writes=spoken.writes, hint=hint))

    async def close(self) -> None:
        await self._line.close()

    async def _reply(
        self, method: str, path: str, body: bytes | None, *, writes: bool, hint: str, action: Action | None = None
    ) -> HttpReply:
        seconds = self._line.timeout_seconds
        if action in _UPKEEP:
            seconds = max(seconds, _UPKEEP_SECONDS)
        try:
            reply = await self._line.call(method, path, body, timeout_seconds=seconds)
        except NoResponse as lost:
            failure = _no_response_error(self._line.url, lost, writes=writes, hint=hint)
        else:
            if reply.status == 200:
                return reply
            failure = to_error(self._line.url, reply, writes=writes, hint=hint)
        raise failure

    def _read(self, reply: HttpReply, decode: Callable[[bytes], object], *, writes: bool, hint: str = "") -> object:
        try:
            return decode(reply.body)
        except HoldfastError as error:
            field = error.field if isinstance(error, InvalidInput) else "answer"
        problem = f"{self._line.url} sent an answer that is not Holdfast's (at {field:.60})"
        if writes:
            raise OutcomeUnknown(f"{problem}; {hint}")
        raise StoreUnusable(f"{problem}; check the address, and that the server has this version")


def _hint(idempotency_key: object) -> str:
    if idempotency_key is None:
        return "it is not known whether it was done: look before you repeat it, and give writes an idempotency_key"
    return "it is not known whether it was done: call again with the same idempotency_key, which does nothing twice"


def _no_response_error(url: str, lost: NoResponse, *, writes: bool, hint: str) -> HoldfastError:
    if writes and lost.sent:
        return OutcomeUnknown(f"{url} {lost.reason}; {hint}")
    return StoreUnavailable(f"{url} {lost.reason}; nothing was done, trying again is safe")


def to_error(url: str, reply: HttpReply, *, writes: bool, hint: str) -> HoldfastError:
    """Translate an error response: Holdfast's as it was raised there, any other by its status."""
    known = decode_error(reply.body)
    if isinstance(known, StoreClosed):
        # The server's store is closed, not this memory.
        return StoreUnavailable(f"{url} is shutting down; nothing was done, try again soon")
    if known is not None:
        return known
    from_server, detail = _server_detail(reply)
    if reply.status >= 500:
        return _server_error(url, reply, detail, from_server=from_server, writes=writes, hint=hint)
    when = f"in {reply.retry_after} s" if (reply.retry_after or "").isdigit() else "later"
    match reply.status:
        case 401:
            return Unauthenticated(f"{url} does not accept this key{detail}; give it as `key`, or as HOLDFAST_KEY")
        case 403 | 407:
            return AccessDenied(f"{url} refuses this{detail}")
        case 408:
            return StoreUnavailable(f"{url} did not get the whole request in time; nothing was done, try again")
        case 413:
            return InvalidInput("request", f"is larger than the server accepts{detail}; send less at once")
        case 429:
            return StoreBusy(f"{url} gets too many requests; nothing was done, try again {when}")
    if 300 <= reply.status < 400:
        return StoreUnusable(f"{url} redirects ({reply.status}); give the address that it redirects to")
    return StoreUnusable(f"{url} answered {reply.status}{detail}; check that it is the address of a Holdfast server")


def _server_error(
    url: str, reply: HttpReply, detail: str, *, from_server: bool, writes: bool, hint: str
) -> HoldfastError:
    if from_server and reply.status == 503:
        return StoreUnavailable(f"{url} is overloaded{detail}; nothing was done, try again soon")
    if writes:
        return OutcomeUnknown(f"{url} answered {reply.status}{detail}; {hint}")
    if reply.status in (502, 503, 504):
        return StoreUnavailable(f"{url} answered {reply.status}; nothing was done, trying again is safe")
    return StoreError(f"{url} answered {reply.status}{detail}; see the server's log")


def _server_detail(reply: HttpReply) -> tuple[bool, str]:
    """Return whether the server itself wrote the answer, and its detail. A proxy's text is not repeated."""
    if reply.media_type != "application/problem+json":
        return False, ""
    try:
        problem = from_json(reply.body)
    except ValueError:
        return False, ""
    detail = problem.get("detail") if isinstance(problem, dict) else None
    if not isinstance(detail, str) or not isinstance(problem.get("code"), str):
        return False, ""
    return True, f" ({detail:.{_SAID_CHARS}})"
