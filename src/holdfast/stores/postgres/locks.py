"""Advisory locks that serialize writes per partition.

Each write takes the partition's lock before it reads anything, and holds it until commit. So what it read is still true
when it commits, and a partition's change numbers are committed in order: a reader that has seen one has seen all below
it. Writes to other partitions run in parallel. A write over a whole space (a forget also takes what was learned
elsewhere) takes the space's lock exclusively; all other writes share it.

A lock is a number that PostgreSQL holds until the transaction ends. Two names that share a number, of 2^64, only wait
for each other needlessly.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from holdfast.domain.access import Action, Grant
from holdfast.domain.scope import Partition

# One lock for all schemas of a database, since they share its extension.
MIGRATION = int.from_bytes(hashlib.blake2b(b"holdfast/migration", digest_size=8).digest(), "big", signed=True)
# Actions of an operator that name no subject or agent, and read only where they write.
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
    """Key of the lock that every open connection of a store shares; a copy into the store holds it exclusively."""
    return _key(schema)


@lru_cache(maxsize=1_000)
def space_key(schema: str, space: str) -> int:
    return _key(schema, space)


@lru_cache(maxsize=10_000)
def partition_key(schema: str, partition: Partition) -> int:
    return _key(schema, partition.space, partition.kind, partition.owner)


def space_to_lock(grant: Grant) -> str | None:
    """Return the space that a write must lock exclusively, if any."""
    if grant.everywhere:
        return None
    reaches_over = grant.action is Action.FORGET or (grant.partitions is None and grant.action not in _AT_HOME)
    return grant.scope.space if reaches_over else None


def partitions_to_lock(grant: Grant) -> frozenset[Partition]:
    """Return the partitions that a write must lock, by its grant; store-wide work locks partitions as it goes."""
    if grant.everywhere:
        return frozenset()
    return grant.partitions if grant.partitions is not None else frozenset({grant.scope.partition})
