"""Named places where a test may make the process die, fail or wait.

`reach` costs nothing to speak of until a test arms it, in its own process and by code: no setting and no variable of
the environment does. What happens there is the test's business. `POINTS` is the whole list: the tests kill a process
at each of them, on every store.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = {
    "write.before": "a verb's transaction is open, and nothing of the verb is in it",
    "write.after": "everything of the verb is in its transaction, its audit row included, and nothing is committed",
    "outside.before": "the intent to ask somebody outside is committed, and nobody was asked",
    "outside.after": "they have answered, and nothing of that is written down",
    "commit.before": "the store is about to commit",
    "commit.after": "the commit is durable, and nobody has been told",
    "audit.before": "audit rows of reads and refusals are about to be written",
    "audit.after": "they are in a transaction that is not committed",
    "index.before": "terms and vectors have been made, and are in no transaction",
    "index.after": "they are in a transaction that is not committed",
    "job.claim.before": "a worker is about to take a job",
    "job.claim.after": "it has taken one, in a transaction that is not committed",
    "job.finish.before": "a job's slow part is done, and nothing of its effect is in the transaction",
    "job.finish.after": "its effect and its end are in a transaction that is not committed",
    "forget.before": "what is to be forgotten is known, and all of it is there",
    "forget.after": "it is gone in a transaction that is not committed",
    "scrub.before": "a forget is committed, and its bytes are still in files",
    "scrub.after": "its bytes are gone, and nobody has been told",
    "migration.before": "a step of the schema is about to begin, under its lock",
    "migration.after": "the step is made and not committed",
    "copy.chunk.before": "rows and the note of how far the copy has come are in the target, and not committed",
    "copy.chunk.after": "they are committed",
}

_act: Callable[[str], None] | None = None


def reach(point: str) -> None:
    """Say that this point is reached."""
    if _act is not None:
        _act(point)


def arm(act: Callable[[str], None] | None) -> None:
    """From now on, call this with the name of each point that is reached, in the thread that reaches it."""
    global _act
    _act = act
