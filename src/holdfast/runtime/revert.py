"""`revert`: undo what was decided about a memory, by a new revision that repeats an earlier one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import IdempotencyKey, check_arguments, text_rule, whole_number
from holdfast.domain.memory import Plane
from holdfast.domain.results import RememberResult
from holdfast.domain.scope import Scope
from holdfast.errors import InvalidInput, NotFound
from holdfast.ports import Transaction
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.record_writes import add_revision
from holdfast.runtime.remember import MAX_REASON_CHARS, current_memory, find_replayed_revision, trust_of
from holdfast.runtime.revisions import MAX_REVISION, ExpectedRevision, repeat_revision, require_revision


@dataclass(frozen=True, slots=True)
class PreparedRevert:
    core: Core
    grant: Grant


@dataclass(frozen=True, slots=True)
class Revert(Write[PreparedRevert, RememberResult]):
    """Make an earlier revision of a memory current again: its text, validity, status, evidence and marks.

    The history keeps all revisions, and this one can be reverted as well. With another text than now it has at most
    the trust of the caller.
    """

    action: ClassVar[Action] = Action.REVERT
    scope: Scope
    memory_id: ids.Id
    revision: Annotated[int, whole_number(1, MAX_REVISION), "The number of the revision in the history."]
    reason: Annotated[str | None, text_rule(MAX_REASON_CHARS), "Who said so, or what was wrong."] = None
    expected_revision: ExpectedRevision | None = None
    idempotency_key: IdempotencyKey | None = None

    def __post_init__(self) -> None:
        check_arguments(self)

    async def prepare(self, core: Core, grant: Grant) -> PreparedRevert:
        return PreparedRevert(core, grant)

    def apply(self, transaction: Transaction, prepared: PreparedRevert) -> RememberResult:
        core, grant = prepared.core, prepared.grant
        current = current_memory(transaction, self.memory_id)
        require_revision(current, self.expected_revision)
        if self.revision == current.revision:
            raise InvalidInput("revision", f"is the current one, {current.revision}; name an earlier one")
        (history,) = transaction.records.histories([current.id])
        earlier = next((each for each in history if each.revision == self.revision), None)
        if earlier is None:
            raise NotFound(f"{current.id} has no revision {self.revision}; it never had, or it was forgotten")
        reason = self.reason or f"reverted to revision {earlier.revision}"
        restored = repeat_revision(current, core.clock.now(), str(grant.actor), reason, of=earlier)
        if earlier.text != current.text:
            restored = replace(restored, trust=min(earlier.trust, trust_of(grant.actor)))
        if current.plane is Plane.PROCEDURAL:
            # Whether a runtime skill is recalled is decided by its state, not by its text.
            restored = replace(restored, status=current.status)
        add_revision(transaction, core, restored)
        return RememberResult(current_memory(transaction, current.id))

    def record_count(self, result: RememberResult) -> int:
        return 0 if result.replayed else 1

    def replay_state(self, result: RememberResult) -> dict[str, Any]:
        return {"memory_id": result.memory.id, "revision": result.memory.revision}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> RememberResult:
        """Return the revision the first call made, if it still exists."""
        return find_replayed_revision(transaction, kept)
