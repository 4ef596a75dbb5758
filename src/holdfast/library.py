"""The library: every verb as a method, on the service port. `holdfast.sync` is its blocking facade."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from holdfast.domain.access import LOCAL_OPERATOR, Action, Actor
from holdfast.domain.checks import checked_flag
from holdfast.domain.conditions import Condition
from holdfast.domain.forgetting import ForgetPreview, ForgetReceipt
from holdfast.domain.ids import MessageId
from holdfast.domain.jobs import Job, JobStatus
from holdfast.domain.memory import MemoryRecord, Plane, Status
from holdfast.domain.resources import UNNAMED, Resource, ResourceAdded, ResourcePage
from holdfast.domain.results import (
    Added,
    Browsed,
    Explanation,
    Flushed,
    Hit,
    Page,
    RebuildResult,
    Recall,
    Record,
    Stats,
    Verification,
)
from holdfast.domain.scope import DEFAULT_SPACE, EVERYWHERE, Scope
from holdfast.domain.search import Order
from holdfast.domain.transcript import DEFAULT_CONVERSATION
from holdfast.domain.users import Issued, User, UserPage
from holdfast.errors import InvalidInput
from holdfast.inputs import (
    CREDENTIALS,
    MISSING,
    SCOPE_ONLY,
    SEARCHABLE,
    Credential,
    MessageInput,
    Missing,
    Moment,
    ScopeKwargs,
    SearchKwargs,
    as_texts,
    content_from,
    drafts_from,
    key_holder_from,
    kind_from,
    metadata_from,
    moment_from,
    parse_enum,
    planes_from,
    rights_from,
    scope_from,
    search_options_from,
    target_from,
    validity_from,
)
from holdfast.loops import run_in_thread
from holdfast.ports import ListFilter, SearchOptions, Service, Verb
from holdfast.runtime.add import Add
from holdfast.runtime.browse import Browse
from holdfast.runtime.flush import Flush
from holdfast.runtime.forget import Forget, PreviewForget
from holdfast.runtime.lookup import Get, GetHistory, List
from holdfast.runtime.recall import RecallMemory
from holdfast.runtime.remember import Correct, Remember
from holdfast.runtime.resources import AddResource, DeleteResource, GetResource, ListResources
from holdfast.runtime.search import Explain, Search
from holdfast.runtime.store_maintenance import Drain, GetStats, ListJobs, Rebuild, Verify
from holdfast.runtime.users import CreateUser, ListUsers, RevokeUser

T = TypeVar("T")


class AsyncMemory:
    """An asynchronous memory. Every method takes the parts of a scope as keywords: subject, conversation, app, project…

    A given part must match; an omitted one matches anything the caller may see. `add`, `flush` and `forget` of a
    conversation affect one: the named subject's or agent's, or without either the one that belongs to no one.
    """

    def __init__(
        self,
        service: Service,
        *,
        actor: Actor = LOCAL_OPERATOR,
        space: str = DEFAULT_SPACE,
        subject: str | None = None,
    ) -> None:
        """Use a service. `subject` is the default subject of calls, for a caller who may act for only one."""
        self._service = service
        self._actor = actor
        self._space = space
        self._subject = subject

    @property
    def _sync_safe(self) -> bool:
        """True if adding, remembering and reading need no event loop."""
        return self._service.sync_safe

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

    def _space_scope(self, where: Mapping[str, Any], allowed: frozenset[str] = SCOPE_ONLY) -> Scope:
        """Build a scope without the default subject."""
        return scope_from(where, self._space, allowed)

    def _create_user_request(
        self, user_id: str, credential: Credential, key: str | None, idempotency_key: str | None, rotate: bool
    ) -> CreateUser:
        space = self._space_scope(credential, CREDENTIALS)
        return CreateUser(space, user_id, key, rotate, idempotency_key, rotate, *rights_from(credential))

    async def add(
        self,
        messages: MessageInput | Iterable[MessageInput],
        *,
        idempotency_key: str | None = None,
        source: str | None = None,
        **where: Unpack[ScopeKwargs],
    ) -> Added:
        """Add messages. They are durable and searchable on return.

        A message is a text, or a dictionary with `text` and any of `sender`, `role`, `timestamp`, `id`, `metadata`.
        Without a conversation it goes into the one called "default".
        """

        def make() -> Add:
            scope = self._scope({"conversation": DEFAULT_CONVERSATION, **where})
            return Add(scope, drafts_from(messages), idempotency_key, source)

        return await self._perform(Action.ADD, make)

    async def flush(self, *, idempotency_key: str | None = None, **where: Unpack[ScopeKwargs]) -> Flushed:
        """Wait for the vectors of one conversation, as in `add`; seal its messages and queue the extraction."""
        return await self._perform(
            Action.FLUSH,
            lambda: Flush(self._scope({"conversation": DEFAULT_CONVERSATION, **where}), idempotency_key),
        )

    async def search(self, query: str, **options: Unpack[SearchKwargs]) -> tuple[Hit, ...]:
        """Search memories and messages; return hits with scores and evidence, best first.

        `top_k` limits the number of hits. `kind`, `planes`, `sender`, `role`, `source`, `said_from`, `said_to` and
        `min_score` filter them. `as_of` searches what was known at a time, `valid_at` what was true at a time.

        `method` is hybrid, keyword (words only) or vector (meaning only; the score is the similarity). `radius` is the
        minimum similarity of meaning, 0 to 1. A `condition` restricts the records that are searched and ranked.
        """
        return await self._perform(
            Action.SEARCH, lambda: Search(self._scope(options, SEARCHABLE), query, search_options_from(options))
        )

    async def explain(
        self, query: str, *, record_id: str | None = None, **options: Unpack[SearchKwargs]
    ) -> Explanation:
        """Search and return every component of each score; with `record_id`, also why that record was not found."""
        return await self._perform(
            Action.EXPLAIN,
            lambda: Explain(self._scope(options, SEARCHABLE), query, search_options_from(options), record_id),
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
        **where: Unpack[ScopeKwargs],
    ) -> Recall:
        """Select what to show a model within a budget: memories first, and messages where no memory covers them."""

        def make() -> RecallMemory:
            options = SearchOptions(
                top_k=limit,
                planes=planes_from(planes),
                as_of=moment_from(as_of, "as_of"),
                valid_at=moment_from(valid_at, "valid_at"),
            )
            return RecallMemory(self._scope(where), query, options, budget_chars)

        return await self._perform(Action.RECALL, make)

    async def get(self, record_id: str, *, as_of: Moment | None = None, **where: Unpack[ScopeKwargs]) -> Record:
        """Get a memory or message by its id."""
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
        **where: Unpack[ScopeKwargs],
    ) -> Page:
        """List memories and messages, newest first, page by page. `unsealed`: only those that no flush has sealed."""

        def make() -> List:
            chosen_planes = planes_from(planes)
            criteria = ListFilter(
                kind=kind_from(kind, chosen_planes),
                planes=chosen_planes,
                sender=sender,
                source=source,
                status=None if status is None else parse_enum(Status, status, "status"),
                as_of=moment_from(as_of, "as_of"),
                valid_at=moment_from(valid_at, "valid_at"),
                unsealed=checked_flag(unsealed, "unsealed"),
            )
            return List(self._scope(where), criteria, limit, cursor)

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
        **where: Unpack[ScopeKwargs],
    ) -> Browsed:
        """List by the time of `said` or `recorded` from any offset, with the total. New records shift offsets."""

        def make() -> Browse:
            options = search_options_from({"kind": kind, "planes": planes, "condition": condition})
            by = parse_enum(Order, order, "order")
            return Browse(self._scope(where), options, by, ascending, offset, limit)

        return await self._perform(Action.BROWSE, make)

    async def history(self, record_id: str, **where: Unpack[ScopeKwargs]) -> tuple[Record, ...]:
        """List every revision of a memory, oldest first, after the message that it replaced, if any.

        That message's id gives the same result.
        """
        return await self._perform(Action.HISTORY, lambda: GetHistory(self._scope(where), record_id))

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
        **where: Unpack[ScopeKwargs],
    ) -> MemoryRecord:
        """Store a memory. `evidence` are the ids of the messages that it comes from."""

        def make() -> Remember:
            return Remember(
                scope=self._scope(where),
                text=text,
                plane=parse_enum(Plane, plane, "plane"),
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
        **where: Unpack[ScopeKwargs],
    ) -> MemoryRecord:
        """Supersede a memory. The old revision stays readable with `as_of` and `history`.

        Correcting a message creates a memory that replaces it in search. The message stays readable by its id and in
        the history of both. Forgetting that memory also forgets the message.
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
        **where: Unpack[ScopeKwargs],
    ) -> ForgetPreview:
        """Preview what `forget` with the same arguments would delete; `empty` if nothing. It changes nothing."""
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
        **where: Unpack[ScopeKwargs],
    ) -> ForgetReceipt:
        """Forget permanently: some ids, or a whole source, conversation or subject.

        A conversation belongs to a subject or an agent. If the scope names neither, only a conversation that belongs to
        no one is forgotten, never those of others with the same name; if only others have one, `InvalidScope` is
        raised. An unknown id is `NotFound`; of an unknown source, conversation or subject, `receipt.found` is False.

        With the `token` of a preview, it fails if it would now delete anything else; with `expected_revision`, if the
        record is at another revision.
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
        **where: Unpack[ScopeKwargs],
    ) -> ResourceAdded:
        """Add a document: a text, the bytes of a file, or its path. The same file in a scope is stored once.

        It reads text, markdown, HTML, PDF and DOCX. `external_uri` is the origin: an http(s) address or your own name.
        """
        document: tuple[bytes, str | None] | InvalidInput
        try:
            document = await run_in_thread(lambda: content_from(content))
        except InvalidInput as error:
            document = error  # raised inside the gate, so that the refusal leaves an operation row

        def make() -> AddResource:
            if isinstance(document, InvalidInput):
                raise document
            named = document[1] or UNNAMED if name is None else name
            return AddResource(self._scope(where), named, document[0], media_type, external_uri, idempotency_key)

        return await self._perform(Action.ADD_RESOURCE, make)

    async def resources(
        self, *, limit: int = 50, cursor: str | None = None, **where: Unpack[ScopeKwargs]
    ) -> ResourcePage:
        """List resources, newest first, page by page."""
        return await self._perform(Action.LIST_RESOURCES, lambda: ListResources(self._scope(where), limit, cursor))

    async def resource(self, resource_id: str, **where: Unpack[ScopeKwargs]) -> Resource:
        """Get a resource by its id. Find its text with `search`, or `list(source=resource.uri)`."""
        return await self._perform(Action.GET_RESOURCE, lambda: GetResource(self._scope(where), resource_id))

    async def delete_resource(
        self, resource_id: str, *, idempotency_key: str | None = None, **where: Unpack[ScopeKwargs]
    ) -> ForgetReceipt:
        """Forget a resource permanently, with all its chunks."""
        return await self._perform(
            Action.DELETE_RESOURCE, lambda: DeleteResource(self._scope(where), resource_id, idempotency_key)
        )

    async def create_user(
        self,
        user_id: str,
        *,
        presented_key: str | None = None,
        idempotency_key: str | None = None,
        **credential: Unpack[Credential],
    ) -> Issued:
        """Create a credential for a user, an agent or an operator of one space. The key is returned only this once.

        If it exists already, `presented_key` proves that the caller holds its key, and nothing changes. `subjects` are
        the subjects that an agent may act for besides itself.
        """
        return await self._perform(
            Action.CREATE_USER,
            lambda: self._create_user_request(user_id, credential, presented_key, idempotency_key, False),
        )

    async def rotate_user(
        self, user_id: str, *, idempotency_key: str | None = None, **credential: Unpack[Credential]
    ) -> Issued:
        """Issue a new key for an existing credential, revoked or not. The old key becomes invalid.

        Role and subjects stay as they are, unless given.
        """
        return await self._perform(
            Action.CREATE_USER, lambda: self._create_user_request(user_id, credential, None, idempotency_key, True)
        )

    async def revoke_user(
        self, user_id: str, *, idempotency_key: str | None = None, kind: str = "user", **where: Unpack[ScopeKwargs]
    ) -> User:
        """Revoke a credential. The user's records stay; `forget` deletes them."""
        return await self._perform(
            Action.REVOKE_USER,
            lambda: RevokeUser(self._space_scope(where), user_id, idempotency_key, key_holder_from(kind)),
        )

    async def users(
        self, *, limit: int = 50, cursor: str | None = None, kind: str = "user", **where: Unpack[ScopeKwargs]
    ) -> UserPage:
        """List a space's users, agents or operators (`kind`) by id, page by page, including revoked ones."""
        return await self._perform(
            Action.LIST_USERS, lambda: ListUsers(self._space_scope(where), limit, cursor, key_holder_from(kind))
        )

    async def jobs(
        self, *, status: str | None = None, limit: int = 100, **where: Unpack[ScopeKwargs]
    ) -> tuple[Job, ...]:
        """List background jobs, newest first, with their progress. `space="*"` lists all, re-embedding included."""

        def make() -> ListJobs:
            chosen_status = None if status is None else parse_enum(JobStatus, status, "status")
            return ListJobs(self._scope(where), chosen_status, limit)

        return await self._perform(Action.JOBS, make)

    async def stats(self, **where: Unpack[ScopeKwargs]) -> Stats:
        """Count the records of the scope."""
        return await self._perform(Action.STATS, lambda: GetStats(self._scope(where)))

    async def verify(self) -> Verification:
        """Check the whole store for damage."""
        return await self._perform(Action.VERIFY, lambda: Verify(Scope(space=EVERYWHERE)))

    async def rebuild(self) -> RebuildResult:
        """Rebuild all indexes from the texts, and wait for it. Search keeps working meanwhile."""
        return await self._perform(Action.REBUILD, lambda: Rebuild(Scope(space=EVERYWHERE)))

    async def drain(self) -> int:
        """Run the background jobs that are due now, and wait for them; return their number."""
        return await self._perform(Action.WORK, lambda: Drain(Scope(space=EVERYWHERE)))

    async def close(self) -> None:
        """Finish accepted calls, and close the store."""
        await self._service.close()


def _message_ids(values: Iterable[str]) -> tuple[MessageId, ...]:
    return tuple(MessageId(value) for value in as_texts(values, "evidence"))
