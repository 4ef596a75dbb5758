"""`export_space` and `import_space`: all records of one space as a file with checksums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from holdfast.domain.access import Action, Grant, check_view
from holdfast.domain.archive_format import Archived, ArchivedAlias, ArchivedMemory, ArchivedTurn
from holdfast.domain.checks import checked_flag
from holdfast.domain.continuity_snapshot import is_summary
from holdfast.domain.events import EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.ids import EventId
from holdfast.domain.lifecycle import ModeInput, admit, checked_mode
from holdfast.domain.memory import GUARDED_PLANES, MemoryRecord, Status
from holdfast.domain.runtime_api.exchange import MemorySpaceExportReport, MemorySpaceImportReport, SpaceCounts, Taken
from holdfast.domain.runtime_skills import SkillState
from holdfast.domain.scope import Scope
from holdfast.domain.space_file import (
    LeftOut,
    SpaceFileHeader,
    SpaceFileWriter,
    VerifiedSpaceFile,
    read_records,
    verify_space_file,
)
from holdfast.domain.transcript_turns import View
from holdfast.errors import InvalidInput
from holdfast.loops import run_in_thread
from holdfast.ports import Reader, Transaction
from holdfast.runtime.event_log import append_event
from holdfast.runtime.gate import Core, Read, Write
from holdfast.runtime.transcripts.archive import archive_memory, archive_resource, archive_turns
from holdfast.runtime.transcripts.budgets import require_budget
from holdfast.runtime.transcripts.conversation_address import StartedOperation
from holdfast.runtime.transcripts.record_import import IndexedRecord, RecordImporter, index_records

Tell = Callable[[int, int], None]
_PAGE = 256
# Maximum size of one commit of an import.
_CHUNK_RECORDS = 256
_CHUNK_CHARS = 1_000_000
_NOTHING = LeftOut()


def ignore_progress(done: int, total: int) -> None:
    """Ignore progress reports."""


@dataclass(frozen=True, slots=True)
class ExportSpace(Read[StartedOperation, MemorySpaceExportReport]):
    """Write a space to `sink`, line by line, from one snapshot: a single read transaction, however long it takes.

    Private content is included only on request, for an operator that may read the raw view: transcripts, private
    planes, deferred memories, evidence, and aliases.
    """

    action: ClassVar[Action] = Action.EXPORT_SPACE
    governance: Governance
    include_private: bool
    sink: Callable[[bytes], None] = field(repr=False)
    mode_input: ModeInput = field(default_factory=ModeInput)
    tell: Tell = ignore_progress

    def __post_init__(self) -> None:
        checked_flag(self.include_private, "include_private")
        checked_mode(self.mode_input)

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return Scope(space=self.governance.identity.space)

    async def prepare(self, core: Core, grant: Grant) -> StartedOperation:
        if self.include_private:
            check_view(grant.actor, View.RAW_OWNER_ONLY, self.scope.partition)
        return StartedOperation(core, self.action, core.clock.now(), admit(self.action, self.mode_input))

    def apply(self, reader: Reader, prepared: StartedOperation) -> MemorySpaceExportReport:
        if not prepared.is_admitted:
            return self._report(prepared, SpaceCounts(), None, 0)
        export = _SpaceExport(self, reader, prepared).run()
        counts = SpaceCounts(
            turns=export.writer.counts["turn"],
            messages=export.messages,
            resources=export.writer.counts["resource"],
            memories=export.writer.counts["memory"],
            aliases=export.writer.counts["alias"],
            redacted=export.withheld,
        )
        writer = export.writer
        return self._report(prepared, counts, writer.content_fingerprint, writer.size_bytes, export.left_out)

    def _report(
        self,
        prepared: StartedOperation,
        counts: SpaceCounts,
        fingerprint: str | None,
        size: int,
        left_out: LeftOut = _NOTHING,
    ) -> MemorySpaceExportReport:
        return MemorySpaceExportReport(
            accepted=prepared.is_admitted,
            space=self.scope.space,
            include_private=self.include_private,
            counts=counts,
            content_fingerprint=fingerprint,
            size_bytes=size,
            content=None,
            path=None,
            lifecycle_report=prepared.report_transfer(
                f"{counts.turns} turns, {counts.memories} memories, {size} bytes; {left_out.turns} turns left out"
            ),
            left_out=left_out,
        )

    def record_count(self, result: MemorySpaceExportReport) -> int:
        return result.counts.messages + result.counts.memories


class _SpaceExport:
    """One export of a space in progress."""

    def __init__(self, verb: ExportSpace, reader: Reader, prepared: StartedOperation) -> None:
        self.writer = SpaceFileWriter()
        self.messages = self.withheld = 0
        self._verb = verb
        self._reader = reader
        self._private = verb.include_private
        self._at = prepared.started_at
        counts = reader.maintenance.counts(prepared.core.embedder.fingerprint, prepared.core.analyzer.version)
        self._total = counts["messages"] + counts["memories"]
        self._done = 0
        self.left_out = _NOTHING if self._private else self._count_turns()

    def run(self) -> _SpaceExport:
        header = SpaceFileHeader(self._verb.scope.space, self._at, self._private, self.left_out)
        self._verb.sink(self.writer.header(header))
        turns, aliases = (self._turns(), self._aliases()) if self._private else ((), ())
        for part in (turns, self._memories(), self._resources(), aliases):
            for archived in part:
                self._verb.sink(self.writer.line(archived))
        self._verb.sink(self.writer.trailer())
        return self

    def _report_progress(self, by: int) -> None:
        self._done += by
        self._verb.tell(min(self._done, self._total), self._total)

    def _count_turns(self) -> LeftOut:
        turns = messages = 0
        for thread in self._threads():
            after = 0
            while page := self._reader.transcripts.turn_states(thread, after, _PAGE):
                after = page[-1].sequence
                turns += len(page)
                messages += sum(turn.messages for turn in page)
        self._report_progress(messages)
        return LeftOut(turns, messages)

    def _turns(self) -> Iterator[ArchivedTurn]:
        for thread in self._threads():
            after = 0
            while turns := self._reader.transcripts.turns(thread, after, _PAGE):
                after = turns[-1].sequence
                archived, withheld = archive_turns(self._reader, thread, turns, View.RAW_OWNER_ONLY)
                self.messages += sum(len(turn.messages) for turn in archived)
                self.withheld += withheld
                yield from archived
                self._report_progress(sum(len(turn.messages) for turn in turns))

    def _threads(self) -> list[Scope]:
        """All conversations, in the same order in every store. Holds their names in memory, not their content."""
        found: list[Scope] = []
        while page := self._reader.transcripts.threads(found[-1] if found else None, _PAGE):
            found += [summary.thread for summary in page]
        return sorted(found, key=lambda thread: (thread.partition, sorted(thread.given().items())))

    def _memories(self) -> Iterator[ArchivedMemory]:
        after = ""
        while page := self._reader.records.memories(after, _PAGE):
            after = page[-1][0].id
            links = self._reader.records.links([revisions[0].id for revisions in page]) if self._private else {}
            skills = self._reader.skills.states([revisions[0].id for revisions in page])
            for revisions in page:
                skill = skills.get(revisions[0].id)
                if self._private:
                    yield archive_memory(revisions, links, skill)
                elif _is_public(revisions, skill):
                    # A note says how a turn went, in words of its transcript.
                    yield archive_memory(revisions, links, skill and replace(skill, last_outcome_note=None))
            self._report_progress(len(page))

    def _resources(self) -> Iterator[Archived]:
        before: str | None = None
        while page := self._reader.resources.page(before, _PAGE):
            before = page[-1].id
            yield from map(archive_resource, page)

    def _aliases(self) -> Iterator[Archived]:
        for partition in sorted(self._reader.index.partitions()):
            after = b""
            while page := self._reader.aliases.page(partition, after, _PAGE):
                after = page[-1].key
                for kept in page:
                    yield ArchivedAlias(kept.thread, kept.key.hex(), kept.trusted, kept.recorded_at)


def _is_public(revisions: Sequence[MemoryRecord], skill: SkillState | None) -> bool:
    """True if no revision is private: one private revision withholds all, because the others may say the same.

    The summary of a conversation that a snapshot brought is raw text of its transcript. A skill that is off, or failed,
    is quarantined too, but not in doubt.
    """
    is_deferred = any(each.status is not Status.ACCEPTED for each in revisions)
    if skill.needs_approval if skill is not None else is_deferred:
        return False
    return not any(each.plane in GUARDED_PLANES or is_summary(each.plane, each.text) for each in revisions)


# --- import -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ImportedSpace:
    started: StartedOperation
    found: VerifiedSpaceFile | None = None
    taken: Taken = field(default_factory=Taken)


@dataclass(frozen=True, slots=True)
class ImportSpace(Write[_ImportedSpace, MemorySpaceImportReport]):
    """Import a space. The whole file is verified before anything is written; then it is imported in several commits.

    An interrupted import can be repeated: existing records are recognized by their ids.
    """

    action: ClassVar[Action] = Action.IMPORT_SPACE
    governance: Governance
    source: Callable[[], Iterable[bytes]] = field(repr=False)
    mode_input: ModeInput = field(default_factory=ModeInput)
    tell: Tell = ignore_progress

    def __post_init__(self) -> None:
        checked_mode(self.mode_input)
        if not callable(self.source):
            raise InvalidInput("path", "is missing, and so is the content; give one of them to import")

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return Scope(space=self.governance.identity.space)

    async def prepare(self, core: Core, grant: Grant) -> _ImportedSpace:
        started = StartedOperation(core, self.action, core.clock.now(), admit(self.action, self.mode_input))
        if not started.is_admitted:
            return _ImportedSpace(started)
        space = self.scope.space
        found = await run_in_thread(lambda: verify_space_file(self.source(), space))
        intake = RecordImporter(
            core=core,
            messages_home=None if found.header.space == space else space,
            memories_home=None if found.header.space == space else space,
            author=str(grant.actor),
            keep_author=True,
        )
        taken, done = Taken(), 0
        chunks = _chunks(read_records(self.source(), space))
        while chunk := await run_in_thread(lambda: next(chunks, None)):
            prepared = await index_records(core, chunk)
            taken += await core.store.write(grant, partial(_import_records, self.governance, intake, prepared))
            done += len(chunk)
            self.tell(done, found.records)
        return _ImportedSpace(started, found, taken)

    def apply(self, transaction: Transaction, prepared: _ImportedSpace) -> MemorySpaceImportReport:
        found, taken = prepared.found, prepared.taken
        event_id: EventId | None = None
        if found is not None and taken.changed:
            event_id = append_event(
                transaction,
                prepared.started.core,
                EventKind.OPERATOR,
                self.scope,
                keep=self.governance.budget.events,
                content_hash=found.content_fingerprint,
                details={"operation": self.action.value, "turns": taken.turns, "memories": taken.memories},
            )
        summary = f"{taken.turns} turns, {taken.memories} memories, {taken.known} known"
        left_out = None if found is None else found.header.left_out
        if left_out is not None and left_out.turns:
            summary += f"; the file leaves {left_out.turns} turns out"
        return MemorySpaceImportReport(
            accepted=found is not None,
            changed=taken.changed,
            space=self.scope.space,
            origin_space=None if found is None else found.header.space,
            content_fingerprint=None if found is None else found.content_fingerprint,
            taken=taken,
            lifecycle_report=prepared.started.report_transfer(summary, changed=taken.changed, event_id=event_id),
            left_out=left_out,
        )

    def has_work(self, core: Core, result: MemorySpaceImportReport) -> bool:
        return result.changed

    def record_count(self, result: MemorySpaceImportReport) -> int:
        return result.taken.messages + result.taken.memories


def _import_records(
    governance: Governance, intake: RecordImporter, records: Sequence[IndexedRecord], transaction: Transaction
) -> Taken:
    taken = Taken()
    for record in records:
        taken += intake.import_record(transaction, record)
    if taken.changed:
        require_budget(transaction, governance)
    return taken


def _chunks(found: Iterator[Archived]) -> Iterator[list[Archived]]:
    chunk: list[Archived] = []
    chars = 0
    for archived in found:
        chunk.append(archived)
        chars += _text_chars(archived)
        if len(chunk) == _CHUNK_RECORDS or chars >= _CHUNK_CHARS:
            yield chunk
            chunk, chars = [], 0
    if chunk:
        yield chunk


def _text_chars(archived: Archived) -> int:
    if isinstance(archived, ArchivedTurn):
        return sum(len(message.text or "") for message in archived.messages)
    return sum(len(revision.text) for revision in archived.revisions) if isinstance(archived, ArchivedMemory) else 0
