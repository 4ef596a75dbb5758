"""The resource verbs: a document is stored as memories, one per chunk, with the document as their source."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any, ClassVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import IdempotencyKey, Rule, check_arguments, text_rule
from holdfast.domain.contract import Cursor
from holdfast.domain.external_uris import MAX_URI_CHARS, checked_uri
from holdfast.domain.forgetting import ForgetReceipt, ForgetTarget
from holdfast.domain.ids import Id, MemoryId, ResourceId
from holdfast.domain.jobs import JobKind
from holdfast.domain.memory import ALWAYS, Plane, Status, Trust
from holdfast.domain.resources import MAX_CONTENT_BYTES, Document, Resource, ResourceAdded, ResourcePage, resource_uri
from holdfast.domain.scope import Scope
from holdfast.errors import Conflict, InvalidDocument, InvalidInput, NotFound
from holdfast.loops import run_sync
from holdfast.ports import ForgetPlan, NewRevision, Reader, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.cursors import PageLimit, PageRead
from holdfast.runtime.forget import ForgetWrite, forget_planned
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.job_queue import enqueue_for_store, enqueue_indexing
from holdfast.runtime.record_writes import add_resource, forget_records
from holdfast.runtime.requests import SimpleRead

MAX_NAME_CHARS = 256
MAX_TYPE_CHARS = 256
_CHUNKS_AT_A_TIME = 8
_NOTHING = ForgetPlan(
    fingerprint="", message_ids=(), memory_ids=(), revisions=0, derived_ids=(), weakened=0, conversations=0
)


def _check_content(content: object, field_name: str) -> None:
    if not isinstance(content, bytes):
        raise InvalidInput(field_name, f"expected bytes, got {type(content).__name__}")
    if len(content) > MAX_CONTENT_BYTES:
        size, most = len(content) / 2**20, MAX_CONTENT_BYTES >> 20
        raise InvalidDocument(field_name, f"has {size:,.1f} MB; at most {most} MB can be read: split it")


@dataclass(frozen=True, slots=True)
class _PreparedResource:
    """The parsed document and its indexed chunks; `document` is None if the same file is stored already."""

    core: Core
    sha256: str
    author: str
    now: datetime
    document: Document | None
    entries: tuple[indexing.IndexedText, ...] = ()


@dataclass(frozen=True, slots=True)
class AddResource(Write[_PreparedResource, ResourceAdded]):
    """Add a document: text, markdown, HTML, PDF or DOCX. The same file in a scope is stored once.

    The same file from the same address is stored once in a scope. If some of its chunks were forgotten since, the rest
    is removed and the file is stored again, so that all of it can be found.
    """

    action: ClassVar[Action] = Action.ADD_RESOURCE
    scope: Scope
    name: Annotated[str, text_rule(MAX_NAME_CHARS, "NAME"), "The name of the file; its ending says the format."]
    content: Annotated[
        bytes, Rule(_check_content, "FILE", max_length=MAX_CONTENT_BYTES), "A text, the bytes of a file, or its path."
    ] = field(repr=False)
    media_type: Annotated[str | None, text_rule(MAX_TYPE_CHARS, "TYPE"), "The format, if the name does not say."] = None
    external_uri: Annotated[
        str | None, Rule(checked_uri, "URI", 1, MAX_URI_CHARS), "The origin: an http(s) address or a name of your own."
    ] = None
    idempotency_key: IdempotencyKey | None = None

    def __post_init__(self) -> None:
        check_arguments(self)

    async def prepare(self, core: Core, grant: Grant) -> _PreparedResource:
        sha256 = hashlib.sha256(self.content).hexdigest()
        author, now = str(grant.actor), core.clock.now()
        if await core.store.read(grant, lambda reader: self._is_complete(reader, self._find_stored(reader, sha256))):
            return _PreparedResource(core, sha256, author, now, None)
        caller = f"{self.scope.space}/{author}"
        document = await core.documents.read(self.content, self.media_type, self.name, caller)
        if not document.chunks:
            raise InvalidDocument("content", "contains no text; there is nothing to store")
        entries = await _index_chunks(core, document.chunks, caller)
        return _PreparedResource(core, sha256, author, now, document, tuple(entries))

    def apply(self, transaction: Transaction, prepared: _PreparedResource) -> ResourceAdded:
        stored = self._find_stored(transaction, prepared.sha256)
        if stored is not None and self._is_complete(transaction, stored):
            return ResourceAdded(stored, reused=True)
        core, document = prepared.core, prepared.document
        if document is None:
            raise Conflict("content: the same file was forgotten at the same time; add it again")
        if stored is not None:
            self._remove_remaining(transaction, core, stored)
        resource = self._resource(prepared, document)
        chunks = [
            self._chunk(resource, prepared, number, text, entry)
            for number, (text, entry) in enumerate(zip(document.chunks, prepared.entries, strict=True))
        ]
        add_resource(transaction, core, resource, chunks)
        if not core.embedder.local:
            enqueue_indexing(transaction, core, self.scope, [chunk.id for chunk in chunks])
        return ResourceAdded(resource)

    def _find_stored(self, reader: Reader, sha256: str) -> Resource | None:
        return reader.resources.find_file(self.scope, sha256, self.external_uri)

    def _is_complete(self, reader: Reader, stored: Resource | None) -> bool:
        return stored is not None and len(reader.resources.chunks(stored)) >= stored.chunks

    def _remove_remaining(self, transaction: Transaction, core: Core, stored: Resource) -> None:
        """Remove the remaining chunks of the same file, so that none is stored twice."""
        remaining = replace(_NOTHING, memory_ids=tuple(transaction.resources.chunks(stored)), resource_ids=(stored.id,))
        forget_records(transaction, core, remaining)
        enqueue_for_store(transaction, core, JobKind.SCRUB)

    def _resource(self, prepared: _PreparedResource, document: Document) -> Resource:
        resource_id = ResourceId(prepared.core.ids.new(ids.RESOURCE))
        return Resource(
            id=resource_id,
            uri=resource_uri(self.scope, resource_id),
            name=self.name,
            media_type=document.media_type,
            sha256=prepared.sha256,
            bytes=len(self.content),
            chunks=len(document.chunks),
            external_uri=self.external_uri,
            scope=self.scope,
            recorded_at=prepared.now,
        )

    def _chunk(
        self, resource: Resource, prepared: _PreparedResource, number: int, text: str, entry: indexing.IndexedText
    ) -> NewRevision:
        return NewRevision(
            id=MemoryId(prepared.core.ids.new(ids.MEMORY)),
            scope=self.scope,
            plane=Plane.RESOURCE,
            text=text,
            trust=Trust.LOW,  # the caller is not the author
            status=Status.ACCEPTED,
            validity=ALWAYS,
            recorded_at=resource.recorded_at,
            source=resource.uri,
            author=prepared.author,
            reason=None,
            evidence=(),
            metadata={
                "resource_id": resource.id,
                "resource_uri": resource.external_uri or resource.uri,
                "resource_name": resource.name,
                "chunk": str(number),
            },
            analysis=entry.analysis,
            vectors=entry.vectors,
        )

    def replay_state(self, result: ResourceAdded) -> dict[str, Any]:
        return {"resource_id": result.resource.id, "reused": result.reused}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> ResourceAdded:
        found = transaction.resources.find(kept["resource_id"])
        if found is None:
            raise NotFound("the resource that this idempotency_key made has been forgotten")
        return ResourceAdded(found, kept["reused"])

    def has_work(self, core: Core, result: ResourceAdded) -> bool:
        return not result.reused

    def record_count(self, result: ResourceAdded) -> int:
        return 0 if result.reused else result.resource.chunks


async def _index_chunks(core: Core, chunks: Sequence[str], caller: str) -> list[indexing.IndexedText]:
    """Index the chunks a few at a time, in turn with other callers': the work on a long document takes a second."""
    if not getattr(core.embedder, "sync_safe", False):
        return await indexing.make_entries(core, chunks)
    entries: list[indexing.IndexedText] = []
    for start in range(0, len(chunks), _CHUNKS_AT_A_TIME):
        work = partial(_index_now, core, chunks[start : start + _CHUNKS_AT_A_TIME])
        entries += await core.documents.run_in_turn(caller, work)
    return entries


def _index_now(core: Core, chunks: Sequence[str]) -> list[indexing.IndexedText]:
    return run_sync(indexing.make_entries(core, chunks))


@dataclass(frozen=True, slots=True)
class GetResource(SimpleRead[Resource]):
    """Get a resource by its id. Find its text with `search`, or `list(source=resource.uri)`."""

    action: ClassVar[Action] = Action.GET_RESOURCE
    scope: Scope
    resource_id: Id

    def apply(self, reader: Reader, prepared: Core) -> Resource:
        return _get_resource(reader, self.resource_id)

    def record_count(self, result: Resource) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class ListResources(PageRead[ResourcePage]):
    """List resources, newest first, page by page."""

    action: ClassVar[Action] = Action.LIST_RESOURCES
    scope: Scope
    limit: PageLimit = 50
    cursor: Cursor | None = None

    def apply(self, reader: Reader, prepared: Core) -> ResourcePage:
        return ResourcePage(*self._page(reader.resources.page(self._before(), self.limit + 1)))

    def _query(self) -> str:
        return digest_of("resources", self.scope.given())[:16]


@dataclass(frozen=True, slots=True)
class DeleteResource(ForgetWrite):
    """Forget a resource permanently, with all its chunks."""

    action: ClassVar[Action] = Action.DELETE_RESOURCE
    scope: Scope
    resource_id: Id
    idempotency_key: IdempotencyKey | None = None

    def __post_init__(self) -> None:
        check_arguments(self)

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, transaction: Transaction, prepared: Core) -> ForgetReceipt:
        found = _get_resource(transaction, self.resource_id)
        doomed = transaction.records.plan_forget(ForgetTarget(source=found.uri))
        return forget_planned(transaction, prepared, doomed)


def _get_resource(reader: Reader, resource_id: str) -> Resource:
    found = reader.resources.find(resource_id)
    if found is None:
        raise NotFound(f"there is no resource {resource_id!r:.80} in this scope")
    return found
