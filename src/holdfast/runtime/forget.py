"""`forget`: a preview of the affected records, then tombstones and a receipt that a search can verify."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from holdfast.domain.access import Action, Grant, authorize, storewide_grant
from holdfast.domain.arguments import GROUP, IdempotencyKey, check_arguments
from holdfast.domain.backups import BackupRecord, RetainedBackup
from holdfast.domain.forgetting import ForgetPreview, ForgetReceipt, ForgetTarget
from holdfast.domain.ids import Id, OperationId
from holdfast.domain.jobs import JobKind
from holdfast.domain.scope import Partition, PartitionKind, Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.errors import InvalidInput, InvalidScope, NotFound, PreviewOutdated, StoreError
from holdfast.failpoints import reach
from holdfast.loops import run_in_thread
from holdfast.ports import ForgetPlan, Reader, Transaction
from holdfast.private_files import is_missing
from holdfast.runtime.gate import Core, Read, Write
from holdfast.runtime.job_queue import enqueue_for_store
from holdfast.runtime.record_writes import forget_records
from holdfast.runtime.revisions import ExpectedRevision, require_revision

SHOWN_IDS = 100
log = logging.getLogger("holdfast")
_NOT_YET = OperationId("")  # set by the gate after the commit
_COUNTED = ("messages", "memories", "revisions", "tombstones", "remaining", "resources", "deliveries", "tool_entries")


async def _other_owners(core: Core, grant: Grant) -> tuple[Partition, ...]:
    """The owners of conversations with this name, if the scope names no owner and no unowned one exists.

    Empty for an actor that cannot read them.
    """
    if grant.scope.conversation is None or grant.scope.partition.kind is not PartitionKind.SHARED:
        return ()
    wide = authorize(grant.actor, grant.action, grant.scope, beneath=Action.LIST)
    if wide.partitions is not None:
        return ()
    unowned = await core.store.read(grant, _conversation_owners)
    return () if unowned else await core.store.read(wide, _conversation_owners)


def _conversation_owners(reader: Reader) -> tuple[Partition, ...]:
    return tuple(reader.records.occupied_partitions())


def _plan_forget(reader: Reader, scope: Scope, target: ForgetTarget, others: tuple[Partition, ...]) -> ForgetPlan:
    found = reader.records.plan_forget(target)
    missing = set(target.ids) - {*found.message_ids, *found.memory_ids}
    if missing:
        raise NotFound(f"there is no memory or message {min(missing)!r:.80} in this scope; nothing was forgotten")
    if others and not (
        found.message_ids or found.memory_ids or found.resource_ids or found.delivery_ids or found.tool_entries
    ):
        raise _ambiguous_owner_error(scope, others)
    return found


def _ambiguous_owner_error(scope: Scope, others: tuple[Partition, ...]) -> InvalidScope:
    """The error for a conversation name without its owner: a name alone never selects several conversations."""
    name = f"conversation {scope.conversation!r:.80}"
    if len(others) == 1:
        kind, owner = others[0].kind, others[0].owner
        return InvalidScope(kind, f"{name} belongs to one {kind}, `{owner:.80}`: name it; nothing was forgotten")
    kinds = Counter(each.kind for each in others)
    whose = " and ".join(f"{count:,} {kind}{'s' * (count > 1)}" for kind, count in sorted(kinds.items(), reverse=True))
    return InvalidScope("subject", f"{name} belongs to {whose}: name one of them; nothing was forgotten")


@dataclass(frozen=True, slots=True)
class PreviewForget(Read[tuple[Partition, ...], ForgetPreview]):
    """Preview what `forget` with the same arguments would delete; `empty` if nothing. It changes nothing."""

    action: ClassVar[Action] = Action.FORGET_PREVIEW
    scope: Scope
    target: Annotated[ForgetTarget, GROUP]

    async def prepare(self, core: Core, grant: Grant) -> tuple[Partition, ...]:
        return await _other_owners(core, grant)

    def apply(self, reader: Reader, prepared: tuple[Partition, ...]) -> ForgetPreview:
        found = _plan_forget(reader, self.scope, self.target, prepared)
        everything = (*found.memory_ids, *found.derived_ids, *found.message_ids)
        return ForgetPreview(
            token=found.fingerprint,
            messages=len(found.message_ids),
            memories=len(found.memory_ids) + len(found.derived_ids),
            revisions=found.revisions,
            derived=len(found.derived_ids),
            weakened=found.weakened,
            conversations=found.conversations,
            resources=len(found.resource_ids),
            deliveries=len(found.delivery_ids),
            tool_entries=len(found.tool_entries),
            ids=everything[:SHOWN_IDS],
            truncated=len(everything) > SHOWN_IDS,
        )

    def record_count(self, result: ForgetPreview) -> int:
        return result.messages + result.memories


class ForgetWrite(Write[Any, ForgetReceipt]):
    """Common base of the verbs that forget and return a receipt."""

    __slots__ = ()

    def replay_state(self, result: ForgetReceipt) -> dict[str, Any]:
        state = {name: getattr(result, name) for name in _COUNTED} | {"forgotten_at": to_micros(result.forgotten_at)}
        return state | ({"backups": [each.id for each in result.backups]} if result.backups else {})

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> ForgetReceipt:
        """Rebuild a receipt from its replay state; `scrubbed` and which backups are left is determined again."""
        held = kept.get("backups", ())
        return ForgetReceipt(
            operation_id=_NOT_YET,
            scrubbed=False,
            forgotten_at=from_micros(kept["forgotten_at"]),
            replayed=True,
            backups=tuple(_entry_of(each) for each in transaction.maintenance.backups() if each.id in held),
            **{name: kept.get(name, 0) for name in _COUNTED},  # an older one lacks some
        )

    async def finish(self, core: Core, result: ForgetReceipt, operation_id: OperationId) -> ForgetReceipt:
        return await finish_receipt(core, result, operation_id)

    def record_count(self, result: ForgetReceipt) -> int:
        return result.tombstones


@dataclass(frozen=True, slots=True)
class Forget(ForgetWrite):
    """Forget permanently: some ids, or a whole source, conversation or subject.

    A conversation belongs to a subject or an agent. If the scope names neither, only a conversation that belongs to
    no one is forgotten, never those of others with the same name; if only others have one, `InvalidScope` is
    raised. An unknown id is `NotFound`; of an unknown source, conversation or subject, `receipt.found` is False.
    """

    action: ClassVar[Action] = Action.FORGET
    scope: Scope
    target: Annotated[ForgetTarget, GROUP]
    token: Annotated[Id | None, "A preview's token: fail if anything else would now be deleted."] = None
    idempotency_key: IdempotencyKey | None = None
    expected_revision: ExpectedRevision | None = None

    def __post_init__(self) -> None:
        check_arguments(self)
        if self.expected_revision is not None and len(self.target.ids) != 1:
            raise InvalidInput("expected_revision", "applies to one record; give exactly one id")

    async def prepare(self, core: Core, grant: Grant) -> tuple[Core, tuple[Partition, ...]]:
        return core, await _other_owners(core, grant)

    def apply(self, transaction: Transaction, prepared: tuple[Core, tuple[Partition, ...]]) -> ForgetReceipt:
        core, others = prepared
        found = _plan_forget(transaction, self.scope, self.target, others)
        if self.token not in (None, found.fingerprint):
            raise PreviewOutdated("the token is of no preview of what would be deleted now; make a new preview")
        for record_id in self.target.ids if self.expected_revision is not None else ():
            if (current := transaction.records.find(record_id)) is not None:
                require_revision(current[1], self.expected_revision)
        return forget_planned(transaction, core, found)


def forget_planned(transaction: Transaction, core: Core, found: ForgetPlan) -> ForgetReceipt:
    """Delete the planned records in the transaction of a verb that forgets."""
    now = core.clock.now()
    reach("forget.before")
    tombstones, remaining = forget_records(transaction, core, found)
    reach("forget.after")
    # Queued in the same commit as the deletion, so that the bytes are removed even after a crash.
    enqueue_for_store(transaction, core, JobKind.SCRUB)
    return ForgetReceipt(
        operation_id=_NOT_YET,
        messages=len(found.message_ids),
        memories=len(found.memory_ids) + len(found.derived_ids),
        revisions=found.revisions,
        tombstones=tombstones,
        remaining=remaining,
        scrubbed=False,
        forgotten_at=now,
        resources=len(found.resource_ids),
        deliveries=len(found.delivery_ids),
        tool_entries=len(found.tool_entries),
        backups=tuple(
            _entry_of(each) for each in transaction.maintenance.backups() if each.may_hold(found.first_number)
        )
        if tombstones or found.resource_ids or found.delivery_ids or found.tool_entries
        else (),
    )


def _entry_of(record: BackupRecord) -> RetainedBackup:
    return RetainedBackup(record.id, record.name, record.made_at)


async def finish_receipt(core: Core, receipt: ForgetReceipt, operation_id: OperationId) -> ForgetReceipt:
    backups = receipt.backups and await _still_there(core, receipt.backups)
    return replace(receipt, operation_id=operation_id, scrubbed=await scrub_store(core), backups=backups)


async def _still_there(core: Core, backups: tuple[RetainedBackup, ...]) -> tuple[RetainedBackup, ...]:
    """Return those whose file was not seen to be gone. Not within a transaction: a disk may be slow."""
    records = await core.store.read(storewide_grant(), lambda reader: reader.maintenance.backups())

    def find() -> set[str]:
        return {each.id for each in records if not all(is_missing(Path(file)) for file in each.files)}

    there = await run_in_thread(find)
    return tuple(each for each in backups if each.id in there)


async def scrub_store(core: Core) -> bool:
    """After the commit: remove the deleted bytes from disk, unless a reader blocks it. Return whether they are gone."""
    core.wake()
    try:
        reach("scrub.before")
        scrubbed_now = await core.store.scrub()
        reach("scrub.after")
    except StoreError as error:
        # The records are deleted; the queued job will remove the bytes.
        log.warning("the deleted bytes are still in the write-ahead log: %s", error)
        return False
    return scrubbed_now
