"""Who waits for whom.

Writes to one partition are serial: each takes the partition's lock before it reads anything, and holds it until it is
committed. So what a write decides on is still so when it commits, and a partition's change numbers are committed in
order: a reader that has seen one has seen all below it. Writes to other partitions go on beside it. Whatever reaches
over a whole space (a forget takes along what was learned elsewhere) takes the space's lock alone, which all others
share.

A lock is a number that PostgreSQL keeps until the transaction ends. Two names with one number, of 2^64, would only wait
for each other without need.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from holdfast.domain.access import Action, Grant
from holdfast.domain.scope import Partition

# Over all schemas of a database, since they share its extension.
MIGRATION = int.from_bytes(hashlib.blake2b(b"holdfast/migration", digest_size=8).digest(), "big", signed=True)
# What an operator does without naming a subject or agent, and that reads only where it writes.
_AT_HOME = frozenset(
    {
        Action.ADD,
        Action.REMEMBER,
        Action.ADD_RESOURCE,
        Action.COMMIT_TRANSCRIPT,
        Action.FINALIZE_TURN,
        Action.TRANSCRIPT_LIFECYCLE,
    }
)


def _key(*parts: str) -> int:
    name = "\x00".join(parts).encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big", signed=True)


def store_key(schema: str) -> int:
    """Shared by every connection of a store for as long as it lasts; a copy that fills the store has it alone."""
    return _key(schema)


@lru_cache(maxsize=1_000)
def space_key(schema: str, space: str) -> int:
    return _key(schema, space)


@lru_cache(maxsize=10_000)
def partition_key(schema: str, partition: Partition) -> int:
    return _key(schema, partition.space, partition.kind, partition.owner)


def whole_space(grant: Grant) -> str | None:
    """The space that a write needs for itself, if it does."""
    if grant.everywhere:
        return None
    reaches_over = grant.action is Action.FORGET or (grant.partitions is None and grant.action not in _AT_HOME)
    return grant.scope.space if reaches_over else None


def partitions_of(grant: Grant) -> frozenset[Partition]:
    """What a write needs besides, as far as its grant tells; work over the whole store enters partitions as it goes."""
    if grant.everywhere:
        return frozenset()
    return grant.partitions if grant.partitions is not None else frozenset({grant.scope.partition})
