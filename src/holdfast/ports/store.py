"""Store port: one durable place for everything, read and written within grants."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from holdfast.domain.access import Grant
from holdfast.domain.operations import Operation
from holdfast.domain.scope import Partition

if TYPE_CHECKING:
    from holdfast.ports.repositories.aliases import AliasReader, AliasWriter
    from holdfast.ports.repositories.bindings import BindingReader, BindingWriter
    from holdfast.ports.repositories.costs import CostReader, CostWriter
    from holdfast.ports.repositories.deliveries import DeliveryReader, DeliveryWriter
    from holdfast.ports.repositories.events import EventReader, EventWriter
    from holdfast.ports.repositories.index import IndexReader, IndexWriter
    from holdfast.ports.repositories.jobs import JobReader, JobWriter
    from holdfast.ports.repositories.maintenance import MaintenanceReader, MaintenanceWriter
    from holdfast.ports.repositories.operations import OperationReader, OperationWriter
    from holdfast.ports.repositories.proposals import ProposalReader, ProposalWriter
    from holdfast.ports.repositories.records import RecordReader, RecordWriter
    from holdfast.ports.repositories.resources import ResourceReader, ResourceWriter
    from holdfast.ports.repositories.skills import SkillReader, SkillWriter
    from holdfast.ports.repositories.tools import ToolReader, ToolWriter
    from holdfast.ports.repositories.transcripts import TranscriptReader, TranscriptWriter
    from holdfast.ports.repositories.users import UserReader, UserWriter

T = TypeVar("T")


class Reader(Protocol):
    """A consistent snapshot of what a grant reaches, by repository."""

    @property
    def records(self) -> RecordReader: ...

    @property
    def index(self) -> IndexReader: ...

    @property
    def transcripts(self) -> TranscriptReader: ...

    @property
    def aliases(self) -> AliasReader: ...

    @property
    def resources(self) -> ResourceReader: ...

    @property
    def skills(self) -> SkillReader: ...

    @property
    def proposals(self) -> ProposalReader: ...

    @property
    def tools(self) -> ToolReader: ...

    @property
    def users(self) -> UserReader: ...

    @property
    def bindings(self) -> BindingReader: ...

    @property
    def deliveries(self) -> DeliveryReader: ...

    @property
    def operations(self) -> OperationReader: ...

    @property
    def costs(self) -> CostReader: ...

    @property
    def jobs(self) -> JobReader: ...

    @property
    def events(self) -> EventReader: ...

    @property
    def maintenance(self) -> MaintenanceReader: ...


class Transaction(Reader, Protocol):
    """A write transaction: all of it commits, or nothing."""

    @property
    def records(self) -> RecordWriter: ...

    @property
    def index(self) -> IndexWriter: ...

    @property
    def transcripts(self) -> TranscriptWriter: ...

    @property
    def aliases(self) -> AliasWriter: ...

    @property
    def resources(self) -> ResourceWriter: ...

    @property
    def skills(self) -> SkillWriter: ...

    @property
    def proposals(self) -> ProposalWriter: ...

    @property
    def tools(self) -> ToolWriter: ...

    @property
    def users(self) -> UserWriter: ...

    @property
    def bindings(self) -> BindingWriter: ...

    @property
    def deliveries(self) -> DeliveryWriter: ...

    @property
    def operations(self) -> OperationWriter: ...

    @property
    def costs(self) -> CostWriter: ...

    @property
    def jobs(self) -> JobWriter: ...

    @property
    def events(self) -> EventWriter: ...

    @property
    def maintenance(self) -> MaintenanceWriter: ...


class Store(Protocol):
    """A durable store. A write is acknowledged only after it reached the disk."""

    @property
    def location(self) -> str: ...

    async def read(self, grant: Grant, work: Callable[[Reader], T]) -> T: ...

    async def write(self, grant: Grant, work: Callable[[Transaction], T]) -> T: ...

    async def audit(self, operation: Operation) -> None:
        """Record a read or a refusal within 100 ms, and on close. Waits only under backpressure of a full queue."""

    async def wait_for_audits(self) -> None:
        """Wait until every earlier row of `audit` is in the store."""

    async def scrub(self) -> bool:
        """Remove all deleted bytes from the files. False if a reader prevents it: try again later."""

    @property
    def exact_because(self) -> str | None:
        """Reason why this store has no approximate indexes; None if it can have them."""

    async def build_nearest(
        self, partition: Partition, embedder: str, at: datetime, go_on: Callable[[int, int], bool]
    ) -> Callable[[Transaction], None] | None:
        """Build an approximate index of the partition; returns a function that activates it in a transaction.

        `go_on(done, total)` is called for progress, and stops the work by returning False. None if it was stopped, or
        there is nothing to index.
        """

    async def close(self) -> None: ...
