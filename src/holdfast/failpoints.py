"""Failpoints: named places where a test may make the process die, fail or wait.

`reach` costs next to nothing until a test arms it from code in its own process; no setting or environment variable can.
The test decides what happens there. `POINTS` is the complete list: tests kill a process at each one, on every store.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = {
    "write.before": "a verb's transaction is open and still empty",
    "write.after": "the verb's writes and its audit row are in the transaction, not committed",
    "outside.before": "the intent of an external call is committed, and the call not made",
    "outside.after": "the external call has returned, and its outcome is not recorded",
    "commit.before": "the store is about to commit",
    "commit.after": "the commit is durable, and no caller has been answered",
    "audit.before": "audit rows of reads and refusals are about to be written",
    "audit.after": "they are in a transaction, not committed",
    "index.before": "terms and vectors are computed, and in no transaction",
    "index.after": "they are in a transaction, not committed",
    "job.claim.before": "a worker is about to claim a job",
    "job.claim.after": "it has claimed one in a transaction, not committed",
    "job.finish.before": "a job's slow part is done, and its effect not in the transaction",
    "job.finish.after": "its effect and its end are in a transaction, not committed",
    "forget.before": "the records to forget are known, and all still exist",
    "forget.after": "they are deleted in a transaction, not committed",
    "scrub.before": "a forget is committed, and its bytes are still in files",
    "scrub.after": "its bytes are gone, and no caller has been answered",
    "migration.before": "a schema migration step is about to begin, under its lock",
    "migration.after": "the step is made, not committed",
    "copy.chunk.before": "rows and the copy's progress are in the target, not committed",
    "copy.chunk.after": "they are committed",
    "backup.publish.before": "a backup is complete and verified, under its temporary name",
    "backup.publish.after": "it has its own name, and its store does not know that it is complete",
    "restore.swap.before": "a restored store is complete beside its target, which is as it was",
    "restore.swap.after": "the target holds it, and the file beside it is still there",
}

_act: Callable[[str], None] | None = None


def reach(point: str) -> None:
    """Report that execution has reached this point."""
    if _act is not None:
        _act(point)


def arm(act: Callable[[str], None] | None) -> None:
    """Call `act` with the name of each point that is reached, in the thread that reaches it; None disarms."""
    global _act
    _act = act
