"""Every verb of `runtime/verbs.py` as a method. Written by `make generate`; do not edit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.domain.access import ActorKind, ActorRole
from holdfast.domain.conditions import Condition
from holdfast.domain.events import EventKind, EventPage
from holdfast.domain.forgetting import ForgetPreview, ForgetReceipt
from holdfast.domain.jobs import Job, JobStatus
from holdfast.domain.memory import MemoryRecord, Plane, Status
from holdfast.domain.presentable import Results
from holdfast.domain.resources import Resource, ResourcePage
from holdfast.domain.results import (
    Added,
    Browsed,
    Explanation,
    Flushed,
    Hit,
    Page,
    RebuildResult,
    Recall,
    Stats,
    Verification,
)
from holdfast.domain.search import ListFilter, Method, Order, SearchOptions
from holdfast.domain.transcript import Message, Role
from holdfast.domain.users import Issued, User, UserPage
from holdfast.inputs import (
    MISSING,
    Messages,
    Missing,
    Moment,
    Texts,
    drafts_from,
    evidence_from,
    key_holder_from,
    kind_from,
    metadata_from,
    moment_from,
    optional_parse_enum,
    parse_enum,
    planes_from,
    subjects_from,
    target_from,
    validity_from,
)
from holdfast.loops import A, BlockingFacade, blocking, inline
from holdfast.memory_api.base_calls import MemoryCalls
from holdfast.pending_call import pending_methods
from holdfast.runtime.add import Add
from holdfast.runtime.browse import Browse
from holdfast.runtime.events import ListEvents
from holdfast.runtime.flush import Flush
from holdfast.runtime.forget import Forget, PreviewForget
from holdfast.runtime.lookup import Get, GetHistory, List
from holdfast.runtime.recall import RecallMemory
from holdfast.runtime.remember import Correct, Remember
from holdfast.runtime.resources import DeleteResource, GetResource, ListResources
from holdfast.runtime.revert import Revert
from holdfast.runtime.search import Explain, Search
from holdfast.runtime.store_maintenance import Drain, GetStats, ListJobs, Rebuild, Verify
from holdfast.runtime.users import CreateUser, ListUsers, RevokeUser


@pending_methods("memory")
class MemoryMethods(MemoryCalls):
    """The verbs of a memory."""

    async def add(
        self,
        messages: Messages,
        *,
        idempotency_key: str | None = None,
        source: str | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = "default",
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> Added:
        """Add messages to a conversation. They are durable and searchable on return.

        Retries are safe with an idempotency key, with message ids, or with explicit timestamps and equal content.

        messages: Texts, `{"role", "content"}`, `("user", "hi")`, or messages of LangChain, OpenAI or Anthropic.
        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        source: The origin of the content, to filter and forget by.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            Add.action,
            lambda: Add(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                drafts=drafts_from(messages),
                idempotency_key=idempotency_key,
                source=source,
            ),
        )

    async def flush(
        self,
        *,
        idempotency_key: str | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = "default",
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> Flushed:
        """Wait for the vectors of one conversation, as in `add`; seal its messages and queue the extraction.

        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            Flush.action,
            lambda: Flush(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                idempotency_key=idempotency_key,
            ),
        )

    async def search(
        self,
        query: str,
        *,
        top_k: int = 10,
        kind: str | None = None,
        planes: Texts | None = None,
        sender: str | None = None,
        role: Role | str | None = None,
        source: str | None = None,
        said_from: Moment | None = None,
        said_to: Moment | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        min_score: float | None = None,
        method: Method | str = Method.HYBRID,
        radius: float | None = None,
        condition: Condition | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> Results[Hit]:
        """Search memories and messages; return hits with scores and evidence, best first. All filters must match.

        query: A question, or some words.
        top_k: At most N results.
        kind: message or memory.
        planes: Memories of these planes, such as long_term.
        sender: Messages of this sender.
        role: Messages of this role.
        source: Records from this source.
        said_from: Messages said at this time or later.
        said_to: Messages said before this time.
        as_of: As known at this time, such as 2026-11-15T09:30.
        valid_at: As true at this time.
        min_score: The minimum score, from 0 (all) to 1.
        method: hybrid, keyword (by words alone) or vector (by meaning alone).
        radius: The minimum similarity of meaning, 0 to 1.
        condition: Records that meet a condition.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return Results(
            await self._perform(
                Search.action,
                lambda: Search(
                    scope=self._scope(
                        space, app, project, agent, subject, channel, conversation, run, issue, namespace
                    ),
                    query=query,
                    options=SearchOptions(
                        top_k=top_k,
                        kind=kind_from(kind, planes),
                        planes=None if planes is None else planes_from(planes),
                        sender=sender,
                        role=optional_parse_enum(Role, role, "role"),
                        source=source,
                        said_from=moment_from(said_from, "said_from"),
                        said_to=moment_from(said_to, "said_to"),
                        as_of=moment_from(as_of, "as_of"),
                        valid_at=moment_from(valid_at, "valid_at"),
                        min_score=min_score,
                        method=parse_enum(Method, method, "method"),
                        radius=radius,
                        condition=condition,
                    ),
                ),
            )
        )

    async def explain(
        self,
        query: str,
        *,
        top_k: int = 10,
        kind: str | None = None,
        planes: Texts | None = None,
        sender: str | None = None,
        role: Role | str | None = None,
        source: str | None = None,
        said_from: Moment | None = None,
        said_to: Moment | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        min_score: float | None = None,
        method: Method | str = Method.HYBRID,
        radius: float | None = None,
        condition: Condition | None = None,
        record_id: str | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> Explanation:
        """Search and return every component of each score.

        query: A question, or some words.
        top_k: At most N results.
        kind: message or memory.
        planes: Memories of these planes, such as long_term.
        sender: Messages of this sender.
        role: Messages of this role.
        source: Records from this source.
        said_from: Messages said at this time or later.
        said_to: Messages said before this time.
        as_of: As known at this time, such as 2026-11-15T09:30.
        valid_at: As true at this time.
        min_score: The minimum score, from 0 (all) to 1.
        method: hybrid, keyword (by words alone) or vector (by meaning alone).
        radius: The minimum similarity of meaning, 0 to 1.
        condition: Records that meet a condition.
        record_id: Also show this record's rank, or why it was not found.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            Explain.action,
            lambda: Explain(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                query=query,
                options=SearchOptions(
                    top_k=top_k,
                    kind=kind_from(kind, planes),
                    planes=None if planes is None else planes_from(planes),
                    sender=sender,
                    role=optional_parse_enum(Role, role, "role"),
                    source=source,
                    said_from=moment_from(said_from, "said_from"),
                    said_to=moment_from(said_to, "said_to"),
                    as_of=moment_from(as_of, "as_of"),
                    valid_at=moment_from(valid_at, "valid_at"),
                    min_score=min_score,
                    method=parse_enum(Method, method, "method"),
                    radius=radius,
                    condition=condition,
                ),
                record_id=record_id,
            ),
        )

    async def recall(
        self,
        query: str,
        *,
        top_k: int = 8,
        planes: Texts | None = None,
        sender: str | None = None,
        role: Role | str | None = None,
        source: str | None = None,
        said_from: Moment | None = None,
        said_to: Moment | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        min_score: float | None = None,
        method: Method | str = Method.HYBRID,
        radius: float | None = None,
        condition: Condition | None = None,
        budget_chars: int | None = None,
        budget_tokens: int | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> Recall:
        """Select what to show a model within a budget: what bears on the query, best first, each thing once.

        If nothing bears on the query, the message is empty. `min_score` replaces the floor below which that is so; 0
        switches it off.

        query: A question, or some words.
        top_k: At most N results.
        planes: Memories of these planes, such as long_term.
        sender: Messages of this sender.
        role: Messages of this role.
        source: Records from this source.
        said_from: Messages said at this time or later.
        said_to: Messages said before this time.
        as_of: As known at this time, such as 2026-11-15T09:30.
        valid_at: As true at this time.
        min_score: The minimum score, from 0 (all) to 1.
        method: hybrid, keyword (by words alone) or vector (by meaning alone).
        radius: The minimum similarity of meaning, 0 to 1.
        condition: Records that meet a condition.
        budget_chars: The size of the message in characters; 4,000 without any budget.
        budget_tokens: The size of the message in tokens of the embedder, or of a given tokenizer.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            RecallMemory.action,
            lambda: RecallMemory(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                query=query,
                options=SearchOptions(
                    top_k=top_k,
                    planes=None if planes is None else planes_from(planes),
                    sender=sender,
                    role=optional_parse_enum(Role, role, "role"),
                    source=source,
                    said_from=moment_from(said_from, "said_from"),
                    said_to=moment_from(said_to, "said_to"),
                    as_of=moment_from(as_of, "as_of"),
                    valid_at=moment_from(valid_at, "valid_at"),
                    min_score=min_score,
                    method=parse_enum(Method, method, "method"),
                    radius=radius,
                    condition=condition,
                ),
                budget_chars=budget_chars,
                budget_tokens=budget_tokens,
            ),
        )

    async def get(
        self,
        record_id: str,
        *,
        as_of: Moment | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> Message | MemoryRecord:
        """Get a memory or message by its id.

        as_of: As known at this time, such as 2026-11-15T09:30.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            Get.action,
            lambda: Get(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                record_id=record_id,
                as_of=moment_from(as_of, "as_of"),
            ),
        )

    async def list(
        self,
        *,
        kind: str | None = None,
        planes: Texts | None = None,
        sender: str | None = None,
        source: str | None = None,
        status: Status | str | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        unsealed: bool = False,
        limit: int = 50,
        cursor: str | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> Page:
        """List memories and messages, newest first, page by page. A cursor is valid for the same scope and filter.

        kind: message or memory.
        planes: Memories of these planes, such as long_term.
        sender: Messages of this sender.
        source: Records from this source.
        status: Records of this status.
        as_of: As known at this time, such as 2026-11-15T09:30.
        valid_at: As true at this time.
        unsealed: Only messages that no flush has sealed.
        limit: At most N.
        cursor: The `next_cursor` of the previous page.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            List.action,
            lambda: List(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                filters=ListFilter(
                    kind=kind_from(kind, planes),
                    planes=None if planes is None else planes_from(planes),
                    sender=sender,
                    source=source,
                    status=optional_parse_enum(Status, status, "status"),
                    as_of=moment_from(as_of, "as_of"),
                    valid_at=moment_from(valid_at, "valid_at"),
                    unsealed=unsealed,
                ),
                limit=limit,
                cursor=cursor,
            ),
        )

    async def browse(
        self,
        *,
        kind: str | None = None,
        planes: Texts | None = None,
        sender: str | None = None,
        role: Role | str | None = None,
        source: str | None = None,
        said_from: Moment | None = None,
        said_to: Moment | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        condition: Condition | None = None,
        order: Order | str = Order.SAID,
        ascending: bool = False,
        offset: int = 0,
        limit: int = 50,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> Browsed:
        """List by the time of `said` or `recorded` from any offset, with the total.

        Only the filters of `options` apply, not its ranking options. New records shift offsets; `list` with its cursor
        misses nothing.

        kind: message or memory.
        planes: Memories of these planes, such as long_term.
        sender: Messages of this sender.
        role: Messages of this role.
        source: Records from this source.
        said_from: Messages said at this time or later.
        said_to: Messages said before this time.
        as_of: As known at this time, such as 2026-11-15T09:30.
        valid_at: As true at this time.
        condition: Records that meet a condition.
        order: The time to order by: when it was said or when it was recorded.
        ascending: Oldest first.
        offset: Leave out the first N.
        limit: At most N.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            Browse.action,
            lambda: Browse(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                options=SearchOptions(
                    kind=kind_from(kind, planes),
                    planes=None if planes is None else planes_from(planes),
                    sender=sender,
                    role=optional_parse_enum(Role, role, "role"),
                    source=source,
                    said_from=moment_from(said_from, "said_from"),
                    said_to=moment_from(said_to, "said_to"),
                    as_of=moment_from(as_of, "as_of"),
                    valid_at=moment_from(valid_at, "valid_at"),
                    condition=condition,
                ),
                order=parse_enum(Order, order, "order"),
                ascending=ascending,
                offset=offset,
                limit=limit,
            ),
        )

    async def history(
        self,
        record_id: str,
        *,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> Results[Message | MemoryRecord]:
        """List every revision of a memory, oldest first, after the message that it replaced, if any.

        That message's id gives the same result.

        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return Results(
            await self._perform(
                GetHistory.action,
                lambda: GetHistory(
                    scope=self._scope(
                        space, app, project, agent, subject, channel, conversation, run, issue, namespace
                    ),
                    record_id=record_id,
                ),
            )
        )

    async def remember(
        self,
        text: str,
        *,
        plane: Plane | str = Plane.LONG_TERM,
        evidence: Texts = (),
        valid_from: Moment | None = None,
        valid_until: Moment | None = None,
        source: str | None = None,
        metadata: Mapping[str, str | int | float | bool | None] | None = None,
        quarantined: bool = False,
        idempotency_key: str | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> MemoryRecord:
        """Store a memory. The same statement again is a revision of the first, with the evidence of both.

        It is the same if the words are, but for case, spacing and the full stop, and if scope, plane, source, trust,
        validity, metadata and quarantine are. A statement with evidence and one without stay apart: the first goes when
        its evidence is forgotten.

        text: A statement that can be understood on its own.
        plane: The plane that the memory belongs to.
        evidence: The ids of the messages that it comes from.
        valid_from: True from this time on.
        valid_until: True before this time.
        source: The origin of the content, to filter and forget by.
        metadata: Texts, numbers, True, False or None by name, of your own.
        quarantined: Store it without showing it to searches.
        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return (
            await self._perform(
                Remember.action,
                lambda: Remember(
                    scope=self._scope(
                        space, app, project, agent, subject, channel, conversation, run, issue, namespace
                    ),
                    text=text,
                    plane=parse_enum(Plane, plane, "plane"),
                    evidence=evidence_from(evidence),
                    validity=validity_from(valid_from, valid_until),
                    source=source,
                    metadata=metadata_from(metadata),
                    quarantined=quarantined,
                    idempotency_key=idempotency_key,
                ),
            )
        ).memory

    async def correct(
        self,
        memory_id: str,
        text: str,
        *,
        reason: str | None = None,
        expected_revision: int | None = None,
        valid_from: Moment | None = None,
        valid_until: Moment | None = None,
        evidence: Texts | None = None,
        idempotency_key: str | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> MemoryRecord:
        """Replace the text of a memory or message. The old revision stays readable with `as_of` and `history`.

        Correcting a message creates a memory that replaces it in search. The message stays readable by its id and in
        the history of both. Forgetting that memory also forgets the message.

        text: A statement that can be understood on its own.
        reason: Who said so, or what changed.
        expected_revision: Fail if the record is at another revision.
        valid_from: True from this time on.
        valid_until: True before this time.
        evidence: The ids of the messages that it comes from.
        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return (
            await self._perform(
                Correct.action,
                lambda: Correct(
                    scope=self._scope(
                        space, app, project, agent, subject, channel, conversation, run, issue, namespace
                    ),
                    memory_id=memory_id,
                    text=text,
                    reason=reason,
                    expected_revision=expected_revision,
                    validity=None
                    if valid_from is None and valid_until is None
                    else validity_from(valid_from, valid_until),
                    evidence=None if evidence is None else evidence_from(evidence),
                    idempotency_key=idempotency_key,
                ),
            )
        ).memory

    async def revert(
        self,
        memory_id: str,
        revision: int,
        *,
        reason: str | None = None,
        expected_revision: int | None = None,
        idempotency_key: str | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> MemoryRecord:
        """Make an earlier revision of a memory current again: its text, validity, status, evidence and marks.

        The history keeps all revisions, and this one can be reverted as well. With another text than now it has at most
        the trust of the caller.

        revision: The number of the revision in the history.
        reason: Who said so, or what was wrong.
        expected_revision: Fail if the record is at another revision.
        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return (
            await self._perform(
                Revert.action,
                lambda: Revert(
                    scope=self._scope(
                        space, app, project, agent, subject, channel, conversation, run, issue, namespace
                    ),
                    memory_id=memory_id,
                    revision=revision,
                    reason=reason,
                    expected_revision=expected_revision,
                    idempotency_key=idempotency_key,
                ),
            )
        ).memory

    async def forget_preview(
        self,
        record_id: str | Iterable[str] | Missing = MISSING,
        *,
        source: str | Missing = MISSING,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> ForgetPreview:
        """Preview what `forget` with the same arguments would delete; `empty` if nothing. It changes nothing.

        record_id: The ids of the records to forget.
        source: Forget everything from this source.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            PreviewForget.action,
            lambda: PreviewForget(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                target=target_from(record_id, source, conversation, subject),
            ),
        )

    async def forget(
        self,
        record_id: str | Iterable[str] | Missing = MISSING,
        *,
        source: str | Missing = MISSING,
        token: str | None = None,
        idempotency_key: str | None = None,
        expected_revision: int | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> ForgetReceipt:
        """Forget permanently: some ids, or a whole source, conversation or subject.

        A conversation belongs to a subject or an agent. If the scope names neither, only a conversation that belongs to
        no one is forgotten, never those of others with the same name; if only others have one, `InvalidScope` is
        raised. An unknown id is `NotFound`; of an unknown source, conversation or subject, `receipt.found` is False.

        record_id: The ids of the records to forget.
        source: Forget everything from this source.
        token: A preview's token: fail if anything else would now be deleted.
        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        expected_revision: Fail if the record is at another revision.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            Forget.action,
            lambda: Forget(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                target=target_from(record_id, source, conversation, subject),
                token=token,
                idempotency_key=idempotency_key,
                expected_revision=expected_revision,
            ),
        )

    async def resource(
        self,
        resource_id: str,
        *,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> Resource:
        """Get a resource by its id. Find its text with `search`, or `list(source=resource.uri)`.

        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            GetResource.action,
            lambda: GetResource(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                resource_id=resource_id,
            ),
        )

    async def resources(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> ResourcePage:
        """List resources, newest first, page by page.

        limit: At most N.
        cursor: The `next_cursor` of the previous page.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            ListResources.action,
            lambda: ListResources(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                limit=limit,
                cursor=cursor,
            ),
        )

    async def delete_resource(
        self,
        resource_id: str,
        *,
        idempotency_key: str | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> ForgetReceipt:
        """Forget a resource permanently, with all its chunks.

        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            DeleteResource.action,
            lambda: DeleteResource(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                resource_id=resource_id,
                idempotency_key=idempotency_key,
            ),
        )

    async def create_user(
        self,
        user_id: str,
        *,
        presented_key: str | None = None,
        idempotency_key: str | None = None,
        kind: str = ActorKind.USER,
        role: ActorRole | str | None = None,
        subjects: Texts | None = None,
        space: str | None = None,
    ) -> Issued:
        """Create a credential for a user, an agent or an operator of one space. The key is returned only this once.

        If it exists already and the caller presents its key, nothing changes.

        presented_key: The current key, which proves that the caller holds it.
        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        kind: The kind of credential: user, agent or operator.
        role: What it may do. The default depends on its kind.
        subjects: The subjects that an agent may act for besides itself.
        """
        return await self._perform(
            CreateUser.action,
            lambda: CreateUser(
                scope=self._space_scope(space),
                user_id=user_id,
                presented_key=presented_key,
                idempotency_key=idempotency_key,
                kind=key_holder_from(kind),
                role=optional_parse_enum(ActorRole, role, "role"),
                subjects=None if subjects is None else subjects_from(subjects),
            ),
        )

    async def rotate_user(
        self,
        user_id: str,
        *,
        idempotency_key: str | None = None,
        kind: str = ActorKind.USER,
        role: ActorRole | str | None = None,
        subjects: Texts | None = None,
        space: str | None = None,
    ) -> Issued:
        """Issue a new key for an existing credential, revoked or not. The old key becomes invalid.

        Role and subjects stay as they are, unless given.

        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        kind: The kind of credential: user, agent or operator.
        role: What it may do. The default depends on its kind.
        subjects: The subjects that an agent may act for besides itself.
        """
        return await self._perform(
            CreateUser.action,
            lambda: CreateUser(
                scope=self._space_scope(space),
                user_id=user_id,
                idempotency_key=idempotency_key,
                kind=key_holder_from(kind),
                role=optional_parse_enum(ActorRole, role, "role"),
                subjects=None if subjects is None else subjects_from(subjects),
                rotate=True,
                must_exist=True,
            ),
        )

    async def revoke_user(
        self,
        user_id: str,
        *,
        idempotency_key: str | None = None,
        kind: str = ActorKind.USER,
        space: str | None = None,
    ) -> User:
        """Revoke a credential. The user's records stay; `forget` deletes them.

        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        kind: The kind of credential: user, agent or operator.
        """
        return await self._perform(
            RevokeUser.action,
            lambda: RevokeUser(
                scope=self._space_scope(space),
                user_id=user_id,
                idempotency_key=idempotency_key,
                kind=key_holder_from(kind),
            ),
        )

    async def users(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        kind: str = ActorKind.USER,
        space: str | None = None,
    ) -> UserPage:
        """List a space's users, agents or operators by id, page by page, including revoked ones.

        limit: At most N.
        cursor: The `next_cursor` of the previous page.
        kind: The kind of credential: user, agent or operator.
        """
        return await self._perform(
            ListUsers.action,
            lambda: ListUsers(scope=self._space_scope(space), limit=limit, cursor=cursor, kind=key_holder_from(kind)),
        )

    async def jobs(
        self,
        *,
        status: JobStatus | str | None = None,
        limit: int = 100,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> Results[Job]:
        """List background jobs, newest first, with their progress: one row per attempt. `space="*"` lists all.

        status: Jobs of this status.
        limit: At most N.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return Results(
            await self._perform(
                ListJobs.action,
                lambda: ListJobs(
                    scope=self._scope(
                        space, app, project, agent, subject, channel, conversation, run, issue, namespace
                    ),
                    status=optional_parse_enum(JobStatus, status, "status"),
                    limit=limit,
                ),
            )
        )

    async def stats(
        self,
        *,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> Stats:
        """Count the records and jobs of a scope.

        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            GetStats.action,
            lambda: GetStats(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace)
            ),
        )

    async def events(
        self,
        *,
        kind: EventKind | str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> EventPage:
        """List the event log, newest first: which records were written, merged and deleted. `space="*"` lists all.

        kind: Events of this kind.
        limit: At most N.
        cursor: The `next_cursor` of the previous page.
        agent, subject, project, issue, run, conversation, namespace, app, channel, space: The parts of the scope.
        """
        return await self._perform(
            ListEvents.action,
            lambda: ListEvents(
                scope=self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace),
                kind=optional_parse_enum(EventKind, kind, "kind"),
                limit=limit,
                cursor=cursor,
            ),
        )

    async def verify(
        self,
    ) -> Verification:
        """Check the whole store for damage: the file, and the consistency of its tables."""
        return await self._perform(Verify.action, lambda: Verify(scope=self._store_scope()))

    async def rebuild(
        self,
    ) -> RebuildResult:
        """Rebuild all indexes from the texts, and wait for it. Search uses the old ones meanwhile."""
        return await self._perform(Rebuild.action, lambda: Rebuild(scope=self._store_scope()))

    async def drain(
        self,
    ) -> int:
        """Run the background jobs that are due now, and wait for them; return their number."""
        return await self._perform(Drain.action, lambda: Drain(scope=self._store_scope()))


class BlockingMemoryMethods(BlockingFacade[A]):
    """The same verbs, which wait for their results."""

    add = inline(MemoryMethods.add)
    flush = blocking(MemoryMethods.flush)
    search = inline(MemoryMethods.search)
    explain = inline(MemoryMethods.explain)
    recall = inline(MemoryMethods.recall)
    get = inline(MemoryMethods.get)
    list = inline(MemoryMethods.list)
    browse = inline(MemoryMethods.browse)
    history = inline(MemoryMethods.history)
    remember = inline(MemoryMethods.remember)
    correct = inline(MemoryMethods.correct)
    revert = inline(MemoryMethods.revert)
    forget_preview = blocking(MemoryMethods.forget_preview)
    forget = blocking(MemoryMethods.forget)
    resource = blocking(MemoryMethods.resource)
    resources = blocking(MemoryMethods.resources)
    delete_resource = blocking(MemoryMethods.delete_resource)
    create_user = blocking(MemoryMethods.create_user)
    rotate_user = blocking(MemoryMethods.rotate_user)
    revoke_user = blocking(MemoryMethods.revoke_user)
    users = blocking(MemoryMethods.users)
    jobs = blocking(MemoryMethods.jobs)
    stats = blocking(MemoryMethods.stats)
    events = blocking(MemoryMethods.events)
    verify = blocking(MemoryMethods.verify)
    rebuild = blocking(MemoryMethods.rebuild)
    drain = blocking(MemoryMethods.drain)
