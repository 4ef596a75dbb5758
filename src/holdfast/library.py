"""The library: every verb as a method, on the service port. `holdfast.sync` puts a blocking face on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from holdfast.domain.access import LOCAL_OPERATOR, Action, Actor
from holdfast.domain.conditions import Condition
from holdfast.domain.forgetting import ForgetPreview, ForgetReceipt
from holdfast.domain.ids import MessageId
from holdfast.domain.jobs import Job, JobStatus
from holdfast.domain.memory import Memory as MemoryRecord
from holdfast.domain.memory import Plane, Status
from holdfast.domain.numbers import checked_flag
from holdfast.domain.resources import UNNAMED, Resource, ResourceAdded, ResourcePage
from holdfast.domain.results import (
    Added,
    Browsed,
    Explanation,
    Flushed,
    Hit,
    Page,
    Rebuilt,
    Recall,
    Record,
    Stats,
    Verification,
)
from holdfast.domain.scope import DEFAULT_SPACE, EVERYWHERE, Scope
from holdfast.domain.searching import Order
from holdfast.domain.transcript import DEFAULT_CONVERSATION
from holdfast.domain.users import Issued, User, UserPage
from holdfast.errors import InvalidInput
from holdfast.inputs import (
    CREDENTIALS,
    MISSING,
    SCOPE_ONLY,
    SEARCHABLE,
    Asking,
    Credential,
    Given,
    Missing,
    Moment,
    Where,
    chosen,
    content_from,
    drafts_from,
    holder_from,
    kind_from,
    metadata_from,
    moment_from,
    planes_from,
    rights_from,
    scope_from,
    several,
    target_from,
    validity_from,
    wanted_from,
)
from holdfast.loops import aside
from holdfast.ports import ListFilter, Service, Verb, Wanted
from holdfast.runtime.add import Add
from holdfast.runtime.browse import Browse
from holdfast.runtime.flush import Flush
from holdfast.runtime.forget import Forget, PreviewForget
from holdfast.runtime.lookup import Get, History, List
from holdfast.runtime.recall import RecallMemory
from holdfast.runtime.remember import Correct, Remember
from holdfast.runtime.resources import AddResource, DeleteResource, GetResource, ListResources
from holdfast.runtime.search import Explain, Search
from holdfast.runtime.upkeep import Drain, GetStats, ListJobs, Rebuild, Verify
from holdfast.runtime.users import CreateUser, ListUsers, RevokeUser

T = TypeVar("T")


class AsyncMemory:
    """One memory. Every method takes the parts of a scope as keywords: subject, conversation, app, project, …

    A part that is given must match; one that is not matches anything the caller may see. `add`, `flush` and `forget` of
    a conversation are of one: the named subject's or agent's, else nobody's.
    """

    def __init__(
        self,
        service: Service,
        *,
        actor: Actor = LOCAL_OPERATOR,
        space: str = DEFAULT_SPACE,
        subject: str | None = None,
    ) -> None:
        """`subject` is whom calls are about that name none: for a caller who may speak for one alone."""
        self._service = service
        self._actor = actor
        self._space = space
        self._subject = subject

    @property
    def _loopless(self) -> bool:
        """Whether adding, remembering and reading need no event loop."""
        return self._service.loopless

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _perform(self, action: Action, make: Callable[[], Verb[T]]) -> T:
        return await self._service.perform(self._actor, action, make, space=self._space)

    def _scope(self, where: Mapping[str, Any], allowed: frozenset[str] = SCOPE_ONLY) -> Scope:
        if self._subject is not None and "subject" not in where:
            where = {**where, "subject": self._subject}
        return scope_from(where, self._space, allowed)

    def _whole_space(self, where: Mapping[str, Any], allowed: frozenset[str] = SCOPE_ONLY) -> Scope:
        """For what concerns no subject, whoever is calling."""
        return scope_from(where, self._space, allowed)

    def _let_in(self, user_id: str, given: Credential, key: str | None, again: str | None, rotate: bool) -> CreateUser:
        space = self._whole_space(given, CREDENTIALS)
        return CreateUser(space, user_id, key, rotate, again, rotate, *rights_from(given))

    async def add(
        self,
        messages: Given | Iterable[Given],
        *,
        idempotency_key: str | None = None,
        source: str | None = None,
        **where: Unpack[Where],
    ) -> Added:
        """Add what was said. Durable and searchable on return.

        A message is a text, or a dictionary with `text` and any of `sender`, `role`, `timestamp`, `id`, `metadata`.
        Without a conversation it goes into the one called "default".
        """

        def make() -> Add:
            scope = self._scope({"conversation": DEFAULT_CONVERSATION, **where})
            return Add(scope, drafts_from(messages), idempotency_key, source)

        return await self._perform(Action.ADD, make)

    async def flush(self, *, idempotency_key: str | None = None, **where: Unpack[Where]) -> Flushed:
        """Wait until what was said can be found by meaning, seal it, and queue the extraction of what it says.

        Of one conversation: the subject's or agent's that is named, else nobody's, as with `add`.
        """
        return await self._perform(
            Action.FLUSH,
            lambda: Flush(self._scope({"conversation": DEFAULT_CONVERSATION, **where}), idempotency_key),
        )

    async def search(self, query: str, **asking: Unpack[Asking]) -> tuple[Hit, ...]:
        """What matches, best first: memories and messages, with scores and evidence.

        `top_k` bounds how many. `kind`, `planes`, `sender`, `role`, `source`, `said_from`, `said_to` and `min_score`
        narrow what may come. `as_of` asks what was known at a moment, `valid_at` what was true then.

        `method` is hybrid, keyword (words alone) or vector (meaning alone: a score is the similarity). `radius` is the
        least similarity of meaning, 0 to 1. A `condition` decides what the search sees: nothing else moves a score.
        """
        return await self._perform(
            Action.SEARCH, lambda: Search(self._scope(asking, SEARCHABLE), query, wanted_from(asking))
        )

    async def explain(self, query: str, *, record_id: str | None = None, **asking: Unpack[Asking]) -> Explanation:
        """A search with every component of each score; with `record_id`, also why that one did not come."""
        return await self._perform(
            Action.EXPLAIN, lambda: Explain(self._scope(asking, SEARCHABLE), query, wanted_from(asking), record_id)
        )

    async def recall(
        self,
        query: str,
        *,
        limit: int = 8,
        budget_chars: int = 4_000,
        planes: str | Iterable[str] | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        **where: Unpack[Where],
    ) -> Recall:
        """What a model should be shown: memories first, evidence where there is none, within a budget."""

        def make() -> RecallMemory:
            wanted = Wanted(
                top_k=limit,
                planes=planes_from(planes),
                as_of=moment_from(as_of, "as_of"),
                valid_at=moment_from(valid_at, "valid_at"),
            )
            return RecallMemory(self._scope(where), query, wanted, budget_chars)

        return await self._perform(Action.RECALL, make)

    async def get(self, record_id: str, *, as_of: Moment | None = None, **where: Unpack[Where]) -> Record:
        """A memory or message by its id."""
        return await self._perform(Action.GET, lambda: Get(self._scope(where), record_id, moment_from(as_of, "as_of")))

    async def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        kind: str | None = None,
        planes: str | Iterable[str] | None = None,
        sender: str | None = None,
        source: str | None = None,
        status: str | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        unsealed: bool = False,
        **where: Unpack[Where],
    ) -> Page:
        """Memories and messages, newest first, page by page. `unsealed`: only what no flush has sealed."""

        def make() -> List:
            chosen_planes = planes_from(planes)
            wanted = ListFilter(
                kind=kind_from(kind, chosen_planes),
                planes=chosen_planes,
                sender=sender,
                source=source,
                status=None if status is None else chosen(Status, status, "status"),
                as_of=moment_from(as_of, "as_of"),
                valid_at=moment_from(valid_at, "valid_at"),
                unsealed=checked_flag(unsealed, "unsealed"),
            )
            return List(self._scope(where), wanted, limit, cursor)

        return await self._perform(Action.LIST, make)

    async def browse(
        self,
        *,
        order: str = Order.SAID,
        ascending: bool = False,
        offset: int = 0,
        limit: int = 50,
        kind: str | None = None,
        planes: str | Iterable[str] | None = None,
        condition: Condition | None = None,
        **where: Unpack[Where],
    ) -> Browsed:
        """Memories and messages by the time they were `said` or `recorded`, from any place on, and how many there are.

        What comes meanwhile moves places; `list` with its cursor misses nothing.
        """

        def make() -> Browse:
            wanted = wanted_from({"kind": kind, "planes": planes, "condition": condition})
            by = chosen(Order, order, "order")
            return Browse(self._scope(where), wanted, by, ascending, offset, limit)

        return await self._perform(Action.BROWSE, make)

    async def history(self, record_id: str, **where: Unpack[Where]) -> tuple[Record, ...]:
        """Every revision of a memory, oldest first; before them, the message in whose place it stands.

        The same for that message's id.
        """
        return await self._perform(Action.HISTORY, lambda: History(self._scope(where), record_id))

    async def remember(
        self,
        text: str,
        *,
        plane: str = Plane.LONG_TERM,
        evidence: Iterable[str] = (),
        valid_from: Moment | None = None,
        valid_until: Moment | None = None,
        source: str | None = None,
        metadata: Mapping[str, str] | None = None,
        quarantined: bool = False,
        idempotency_key: str | None = None,
        **where: Unpack[Where],
    ) -> MemoryRecord:
        """Write a memory down. `evidence` are ids of the messages it comes from."""

        def make() -> Remember:
            return Remember(
                scope=self._scope(where),
                text=text,
                plane=chosen(Plane, plane, "plane"),
                evidence=_message_ids(evidence),
                validity=validity_from(valid_from, valid_until),
                source=source,
                metadata=metadata_from(metadata),
                quarantined=quarantined,
                idempotency_key=idempotency_key,
            )

        return (await self._perform(Action.REMEMBER, make)).memory

    async def correct(
        self,
        memory_id: str,
        text: str,
        *,
        reason: str | None = None,
        expected_revision: int | None = None,
        evidence: Iterable[str] | None = None,
        valid_from: Moment | None = None,
        valid_until: Moment | None = None,
        idempotency_key: str | None = None,
        **where: Unpack[Where],
    ) -> MemoryRecord:
        """Supersede a memory. The old revision stays readable with `as_of` and `history`.

        Of a message: a memory that rests on it takes its place in search, and what was said stays readable by its id
        and in the history of both. Forgetting that memory forgets the message, too.
        """

        def make() -> Correct:
            changed = valid_from is not None or valid_until is not None
            return Correct(
                scope=self._scope(where),
                memory_id=memory_id,
                text=text,
                reason=reason,
                expected_revision=expected_revision,
                validity=validity_from(valid_from, valid_until) if changed else None,
                evidence=None if evidence is None else _message_ids(evidence),
                idempotency_key=idempotency_key,
            )

        return (await self._perform(Action.CORRECT, make)).memory

    async def forget_preview(
        self,
        record_id: str | Iterable[str] | Missing = MISSING,
        *,
        source: str | Missing = MISSING,
        **where: Unpack[Where],
    ) -> ForgetPreview:
        """What `forget` with the same arguments would touch, or `empty`. It changes nothing."""
        return await self._perform(
            Action.FORGET_PREVIEW, lambda: PreviewForget(self._scope(where), target_from(record_id, source, where))
        )

    async def forget(
        self,
        record_id: str | Iterable[str] | Missing = MISSING,
        *,
        source: str | Missing = MISSING,
        token: str | None = None,
        expected_revision: int | None = None,
        idempotency_key: str | None = None,
        **where: Unpack[Where],
    ) -> ForgetReceipt:
        """Forget for good: some ids, or a source, a conversation or a subject whole.

        A conversation is its subject's, or its agent's; without either it is nobody's, and never whatever everybody
        calls by that name: where only others have one, `InvalidScope` says so. An id that is not there is `NotFound`.
        A source, conversation or subject of which nothing is there is no error: `receipt.found` is False.

        With the `token` of a preview, it happens only if it would still touch the same; with `expected_revision`, only
        to a record that is still at that one.
        """

        def make() -> Forget:
            target = target_from(record_id, source, where)
            return Forget(self._scope(where), target, token, idempotency_key, expected_revision)

        return await self._perform(Action.FORGET, make)

    async def add_resource(
        self,
        content: bytes | str | PathLike[str],
        *,
        name: str | None = None,
        media_type: str | None = None,
        external_uri: str | None = None,
        idempotency_key: str | None = None,
        **where: Unpack[Where],
    ) -> ResourceAdded:
        """Keep what a document says: a text, the bytes of a file, or its path. The same file in a scope is kept once.

        Text, markdown, HTML, PDF and DOCX can be read. `external_uri` is where it came from:
        an http or https address, or a name of your own.
        """
        given: tuple[bytes, str | None] | InvalidInput
        try:
            given = await aside(lambda: content_from(content))
        except InvalidInput as error:
            given = error  # refused behind the gate, like all that cannot be used

        def make() -> AddResource:
            if isinstance(given, InvalidInput):
                raise given
            named = given[1] or UNNAMED if name is None else name
            return AddResource(self._scope(where), named, given[0], media_type, external_uri, idempotency_key)

        return await self._perform(Action.ADD_RESOURCE, make)

    async def resources(self, *, limit: int = 50, cursor: str | None = None, **where: Unpack[Where]) -> ResourcePage:
        """Resources, newest first, page by page."""
        return await self._perform(Action.LIST_RESOURCES, lambda: ListResources(self._scope(where), limit, cursor))

    async def resource(self, resource_id: str, **where: Unpack[Where]) -> Resource:
        """A resource by its id. What it says is found by `search`, or `list(source=resource.uri)`."""
        return await self._perform(Action.GET_RESOURCE, lambda: GetResource(self._scope(where), resource_id))

    async def delete_resource(
        self, resource_id: str, *, idempotency_key: str | None = None, **where: Unpack[Where]
    ) -> ForgetReceipt:
        """Forget a resource for good, with all that was read of it."""
        return await self._perform(
            Action.DELETE_RESOURCE, lambda: DeleteResource(self._scope(where), resource_id, idempotency_key)
        )

    async def create_user(
        self,
        user_id: str,
        *,
        presented_key: str | None = None,
        idempotency_key: str | None = None,
        **given: Unpack[Credential],
    ) -> Issued:
        """Let somebody in from outside: a user, an agent or an operator of one space. The key is told this once.

        For one that is there already, `presented_key` proves that the caller holds its key; then nothing changes.
        `subjects` are whom an agent may speak for besides itself.
        """
        return await self._perform(
            Action.CREATE_USER, lambda: self._let_in(user_id, given, presented_key, idempotency_key, False)
        )

    async def rotate_user(
        self, user_id: str, *, idempotency_key: str | None = None, **given: Unpack[Credential]
    ) -> Issued:
        """A new key for one that is there, revoked or not. The old one is nobody's from now on.

        Role and subjects stay as they are, unless they are given.
        """
        return await self._perform(
            Action.CREATE_USER, lambda: self._let_in(user_id, given, None, idempotency_key, True)
        )

    async def revoke_user(
        self, user_id: str, *, idempotency_key: str | None = None, kind: str = "user", **where: Unpack[Where]
    ) -> User:
        """Let somebody in no longer. What the user said stays; `forget` takes it away."""
        return await self._perform(
            Action.REVOKE_USER,
            lambda: RevokeUser(self._whole_space(where), user_id, idempotency_key, holder_from(kind)),
        )

    async def users(
        self, *, limit: int = 50, cursor: str | None = None, kind: str = "user", **where: Unpack[Where]
    ) -> UserPage:
        """The users of a space by id, page by page, the revoked too; or its agents, or its operators."""
        return await self._perform(
            Action.LIST_USERS, lambda: ListUsers(self._whole_space(where), limit, cursor, holder_from(kind))
        )

    async def jobs(self, *, status: str | None = None, limit: int = 100, **where: Unpack[Where]) -> tuple[Job, ...]:
        """Background work, newest first, with its progress. `space="*"` is the whole store's, re-embedding included."""

        def make() -> ListJobs:
            wanted = None if status is None else chosen(JobStatus, status, "status")
            return ListJobs(self._scope(where), wanted, limit)

        return await self._perform(Action.JOBS, make)

    async def stats(self, **where: Unpack[Where]) -> Stats:
        """What the scope holds."""
        return await self._perform(Action.STATS, lambda: GetStats(self._scope(where)))

    async def verify(self) -> Verification:
        """Check the whole store for damage."""
        return await self._perform(Action.VERIFY, lambda: Verify(Scope(space=EVERYWHERE)))

    async def rebuild(self) -> Rebuilt:
        """Make all indexes anew from the texts, and wait for it. Search goes on meanwhile."""
        return await self._perform(Action.REBUILD, lambda: Rebuild(Scope(space=EVERYWHERE)))

    async def drain(self) -> int:
        """Do the background work that is due now, and wait for it; how many jobs that were."""
        return await self._perform(Action.WORK, lambda: Drain(Scope(space=EVERYWHERE)))

    async def close(self) -> None:
        """Finish what was accepted, and let go of the store."""
        await self._service.close()


def _message_ids(given: Iterable[str]) -> tuple[MessageId, ...]:
    return tuple(MessageId(value) for value in several(given, "evidence"))
