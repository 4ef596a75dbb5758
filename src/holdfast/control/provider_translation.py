"""Translates the library's verbs to the provider API, and responses back to the library's results.

How an external record becomes a hit or a memory is in `domain/contract_records.py`. Filters are applied to the response
as far as its fields allow. What the API cannot honour at all (`as_of`, a ranking method, a revision) is refused before
the provider is called.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar, cast

from holdfast.control import post_filter, response_validation
from holdfast.control.response_validation import Bounds, ValidatedResponse, matches_scope
from holdfast.domain.bindings import Binding
from holdfast.domain.checks import checked_text
from holdfast.domain.contract import (
    MAX_CONTENT_CHARS,
    MAX_HANDLES,
    MAX_PAGE,
    MAX_QUERY_CHARS,
    MAX_TOP_K,
    CaptureRequest,
    CaptureResult,
    ContextBundle,
    CorrectResult,
    ForgetResult,
    Intent,
    ListPage,
    ListRequest,
    NewRecord,
    QueryRequest,
    RecordHandle,
    RecordWriteRequest,
    Snippet,
    SourceKind,
    SourcePayload,
    SourceRef,
    WriteResult,
)
from holdfast.domain.contract_records import plane_of, to_hit, to_memory
from holdfast.domain.forgetting import ForgetReceipt
from holdfast.domain.ids import MessageId, OperationId
from holdfast.domain.memory import ALWAYS, MemoryRecord, Plane
from holdfast.domain.recall_policy import select_hits
from holdfast.domain.results import Added, Hit, Page, Recall, RememberResult
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Draft
from holdfast.errors import NotFound, ProviderMalformed
from holdfast.ports.provider import FullAdapter
from holdfast.runtime.add import Add
from holdfast.runtime.cursors import decode_cursor, encode_cursor
from holdfast.runtime.forget import Forget
from holdfast.runtime.lookup import Get, List
from holdfast.runtime.recall import RecallMemory
from holdfast.runtime.remember import Correct, Remember
from holdfast.runtime.search import Search

V = TypeVar("V")
T = TypeVar("T")


class Translation(Generic[V, T]):
    """The translation of one verb's call for an external provider."""

    needs: ClassVar[str | None] = None

    def __init__(self, verb: V, binding: Binding, now: datetime) -> None:
        self.verb = verb
        self.binding = binding
        self.now = now

    def unsupported_reason(self) -> str | None:
        """Say what the provider API cannot express; None if nothing. `InvalidText` if a text is too long for it."""
        return None

    async def ask(self, adapter: FullAdapter) -> Any:
        raise NotImplementedError

    def check(self, answer: object, bounds: Bounds) -> ValidatedResponse[T]:
        raise NotImplementedError

    def failure(self, found: T) -> NotFound | None:
        """The failure of the whole call, if this answer is one. The row of the call records it."""
        return None

    def answer(self, found: T, operation_id: OperationId) -> Any:
        raise NotImplementedError

    @staticmethod
    def replay_state(found: Any) -> dict[str, Any]:
        raise NotImplementedError

    @staticmethod
    def from_replay(kept: dict[str, Any]) -> Any:
        raise NotImplementedError

    def handle(self, record_id: str) -> RecordHandle:
        return RecordHandle(self.binding.provider, record_id)


class AddTranslation(Translation[Add, tuple[str | None, ...]]):
    """Sends each message as a capture, with the idempotency key or the message's id to detect repetition."""

    def unsupported_reason(self) -> str | None:
        for at, draft in enumerate(self.verb.drafts):
            checked_text(draft.text, f"messages[{at}].text", max_chars=MAX_CONTENT_CHARS)
        return None

    async def ask(self, adapter: FullAdapter) -> list[object]:
        return [await adapter.capture(self._request(at, draft)) for at, draft in enumerate(self.verb.drafts)]

    def _request(self, at: int, draft: Draft) -> CaptureRequest:
        scope = self.verb.scope
        source = SourceRef(
            kind=SourceKind.ACTIVITY,
            space=scope.space,
            issue_id=scope.issue,
            run_id=scope.run,
            activity_id=draft.external_id,
            external_ref=self.verb.source,
        )
        fields = {"role": draft.role.value, "sender": draft.sender or (scope.subject if draft.role == "user" else None)}
        if draft.said_at is not None:
            fields["said_at"] = draft.said_at.isoformat()
        metadata = {name: value for name, value in fields.items() if value is not None}
        again = None if self.verb.idempotency_key is None else f"{at}/{self.verb.idempotency_key}"
        payload = SourcePayload(draft.text, metadata={**draft.metadata, **metadata})
        return CaptureRequest(self.binding.key, scope, source, payload, idempotency_id=again or draft.external_id)

    def check(self, answer: object, bounds: Bounds) -> ValidatedResponse[tuple[str | None, ...]]:
        assert isinstance(answer, list)
        found = [response_validation.validator(CaptureResult)(each, bounds) for each in answer]
        ids = tuple(each.handles[0] if each.handles else None for each in found)
        usage = tuple(usage for each in found for usage in each.usage)
        named = tuple(each for each in ids if each is not None)[: response_validation.NAMED]
        return ValidatedResponse(ids, len(found), named, usage)

    def answer(self, found: tuple[str | None, ...], operation_id: OperationId) -> Added:
        ids = tuple(None if each is None else MessageId(each) for each in found)
        return Added(None, self.verb.scope.conversation or "", ids, len(ids))

    @staticmethod
    def replay_state(found: tuple[str | None, ...]) -> dict[str, Any]:
        return {"ids": list(found)}

    @staticmethod
    def from_replay(kept: dict[str, Any]) -> tuple[str | None, ...]:
        return tuple(kept["ids"])


Q = TypeVar("Q", Search, RecallMemory)


class _QueryTranslation(Translation[Q, ContextBundle]):
    """Turns a query's snippets into hits and post-filters them."""

    intent: ClassVar[Intent] = Intent.ANSWER

    def unsupported_reason(self) -> str | None:
        checked_text(self.verb.query, "query", max_chars=MAX_QUERY_CHARS)
        return post_filter.unsupported_option(self.verb.options)

    def _scope(self) -> Scope:
        return post_filter.narrow_scope(self.verb.scope, self.verb.options)

    async def ask(self, adapter: FullAdapter) -> Any:
        query, least = self.verb.query, self.verb.options.min_score
        return await adapter.query(
            QueryRequest(self.binding.key, self._scope(), query, MAX_TOP_K, self.intent, min_score=least)
        )

    def check(self, answer: object, bounds: Bounds) -> ValidatedResponse[ContextBundle]:
        return response_validation.validator(ContextBundle, MAX_TOP_K)(answer, bounds)

    def hits(self, found: ContextBundle) -> list[Hit]:
        narrow, wanted = self._scope(), self.verb.options
        hits = [to_hit(each, narrow, self.now) for each in found.snippets if matches_scope(each, self.verb.scope)]
        return [each for each in hits if post_filter.matches_options(each, wanted)]


class SearchTranslation(_QueryTranslation[Search]):
    def answer(self, found: ContextBundle, operation_id: OperationId) -> tuple[Hit, ...]:
        return tuple(self.hits(found)[: self.verb.options.top_k])


class RecallTranslation(_QueryTranslation[RecallMemory]):
    intent = Intent.AGENT_PREAMBLE

    def unsupported_reason(self) -> str | None:
        if self.verb.budget_tokens is not None:
            return "budget_tokens is not supported there"
        return super().unsupported_reason()

    def answer(self, found: ContextBundle, operation_id: OperationId) -> Recall:
        chosen = select_hits(self.hits(found), self.verb.options.top_k, query=self.verb.query)
        return self.verb.to_recall(chosen, None, "the provider found nothing that bears on the query")


class GetTranslation(Translation[Get, Snippet | None]):
    def unsupported_reason(self) -> str | None:
        return post_filter.unsupported_field(self.verb, "as_of")

    async def ask(self, adapter: FullAdapter) -> Any:
        return await adapter.get(self.handle(self.verb.record_id), self.verb.scope)

    def check(self, answer: object, bounds: Bounds) -> ValidatedResponse[Snippet | None]:
        return response_validation.snippet_validator(self.handle(self.verb.record_id))(answer, bounds)

    def failure(self, found: Snippet | None) -> NotFound | None:
        if found is None or not matches_scope(found, self.verb.scope):
            return NotFound(f"there is no memory or message {self.verb.record_id!r:.80} in this scope")
        return None

    def answer(self, found: Snippet | None, operation_id: OperationId) -> MemoryRecord:
        if (failure := self.failure(found)) is not None:
            raise failure
        return to_memory(cast(Snippet, found), self.verb.scope, self.now)


class ListTranslation(Translation[List, ListPage]):
    def unsupported_reason(self) -> str | None:
        wanted = self.verb.filters
        if problem := post_filter.unsupported_field(wanted, "sender", "source", "as_of", "valid_at"):
            return problem
        return "unsealed is not supported there" if wanted.unsealed else None

    async def ask(self, adapter: FullAdapter) -> Any:
        verb = self.verb
        cursor = None if verb.cursor is None else decode_cursor(verb.cursor, verb.query_digest())
        limit = min(verb.limit, MAX_PAGE)
        return await adapter.list(ListRequest(self.binding.key, verb.scope, cursor, limit))

    def check(self, answer: object, bounds: Bounds) -> ValidatedResponse[ListPage]:
        return response_validation.validator(ListPage, min(self.verb.limit, MAX_PAGE), self.verb.scope)(answer, bounds)

    def answer(self, found: ListPage, operation_id: OperationId) -> Page:
        items = tuple(
            to_memory(each, self.verb.scope, self.now)
            for each in found.items
            if post_filter.matches_list_filter(plane_of(each), self.verb.filters)
        )
        cursor = None if found.next_cursor is None else encode_cursor(self.verb.query_digest(), found.next_cursor)
        return Page(items, cursor)


class RememberTranslation(Translation[Remember, RecordHandle]):
    def unsupported_reason(self) -> str | None:
        verb = self.verb
        checked_text(verb.text, "text", max_chars=MAX_CONTENT_CHARS)
        if verb.plane not in (Plane.LONG_TERM, Plane.SHARED_FACT):
            return f"the plane {verb.plane} cannot be stored there"
        for name, value in (("evidence", verb.evidence), ("quarantined", verb.quarantined)):
            if value:
                return f"{name} cannot be stored there"
        return None if verb.validity == ALWAYS else "validity cannot be stored there"

    async def ask(self, adapter: FullAdapter) -> Any:
        verb = self.verb
        record = NewRecord(verb.text, metadata=dict(verb.metadata))
        source = None
        if verb.source is not None:
            source = SourceRef(SourceKind.EXTERNAL_DOCUMENT, verb.scope.space, external_ref=verb.source)
        return await adapter.upsert_records(
            RecordWriteRequest(self.binding.key, verb.scope, (record,), source, verb.idempotency_key)
        )

    def check(self, answer: object, bounds: Bounds) -> ValidatedResponse[RecordHandle]:
        found = response_validation.validator(WriteResult)(answer, bounds)
        if len(found.value.records) != 1:
            raise ProviderMalformed("the provider did not return the handle of exactly one written record")
        return ValidatedResponse(found.value.records[0], 1, found.handles, found.usage)

    def answer(self, found: RecordHandle, operation_id: OperationId) -> RememberResult:
        snippet = Snippet(found, self.verb.text, scope=self.verb.scope, metadata=dict(self.verb.metadata))
        return RememberResult(to_memory(snippet, self.verb.scope, self.now))

    @staticmethod
    def replay_state(found: RecordHandle) -> dict[str, Any]:
        return {"provider": found.provider_key, "id": found.record_id}

    @staticmethod
    def from_replay(kept: dict[str, Any]) -> RecordHandle:
        return RecordHandle(kept["provider"], kept["id"])


class CorrectTranslation(Translation[Correct, RecordHandle]):
    needs = "correction"

    def unsupported_reason(self) -> str | None:
        checked_text(self.verb.text, "text", max_chars=MAX_CONTENT_CHARS)
        return post_filter.unsupported_field(self.verb, "expected_revision", "validity", "evidence")

    async def ask(self, adapter: FullAdapter) -> Any:
        verb = self.verb
        return await adapter.correct(self.handle(verb.memory_id), verb.text, verb.scope, verb.reason)

    def check(self, answer: object, bounds: Bounds) -> ValidatedResponse[RecordHandle]:
        found = response_validation.validator(CorrectResult)(answer, bounds)
        return ValidatedResponse(found.value.record, 1, found.handles, found.usage)

    def answer(self, found: RecordHandle, operation_id: OperationId) -> RememberResult:
        new = Snippet(found, self.verb.text, scope=self.verb.scope)
        return RememberResult(replace(to_memory(new, self.verb.scope, self.now), reason=self.verb.reason))

    replay_state = staticmethod(RememberTranslation.replay_state)
    from_replay = staticmethod(RememberTranslation.from_replay)


class ForgetTranslation(Translation[Forget, ForgetResult]):
    def unsupported_reason(self) -> str | None:
        verb = self.verb
        if not verb.target.ids:
            return "records can be forgotten there only by their ids"
        if len(verb.target.ids) > MAX_HANDLES:
            return f"at most {MAX_HANDLES} records can be forgotten there per call"
        return post_filter.unsupported_field(verb, "expected_revision")

    def _handles(self) -> tuple[RecordHandle, ...]:
        return tuple(self.handle(each) for each in dict.fromkeys(self.verb.target.ids))

    async def ask(self, adapter: FullAdapter) -> Any:
        return await adapter.forget(self._handles(), self.verb.scope)

    def check(self, answer: object, bounds: Bounds) -> ValidatedResponse[ForgetResult]:
        return response_validation.forget_validator(self._handles())(answer, bounds)

    def answer(self, found: ForgetResult, operation_id: OperationId) -> ForgetReceipt:
        """Build a receipt with `scrubbed=False`: only the provider can prove that the bytes are gone."""
        if not found.forgotten:
            raise NotFound("none of these records is in this scope; nothing was forgotten")
        gone = len(found.forgotten)
        return ForgetReceipt(operation_id, 0, gone, 0, 0, 0, scrubbed=False, forgotten_at=self.now)

    @staticmethod
    def replay_state(found: ForgetResult) -> dict[str, Any]:
        return {"handles": [[each.provider_key, each.record_id] for each in found.forgotten]}

    @staticmethod
    def from_replay(kept: dict[str, Any]) -> ForgetResult:
        return ForgetResult(tuple(RecordHandle(*each) for each in kept["handles"]))


TRANSLATIONS: dict[type, type[Translation[Any, Any]]] = {
    Add: AddTranslation,
    Search: SearchTranslation,
    RecallMemory: RecallTranslation,
    Get: GetTranslation,
    List: ListTranslation,
    Remember: RememberTranslation,
    Correct: CorrectTranslation,
    Forget: ForgetTranslation,
}
