"""Who may ask for which view of a transcript. What a view then shows is decided in `redaction.py`."""

from __future__ import annotations

from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.governed import View
from holdfast.domain.scope import Partition, PartitionKind
from holdfast.errors import AccessDenied

_OWNED_BY = {ActorKind.USER: PartitionKind.SUBJECT, ActorKind.AGENT: PartitionKind.AGENT}


def check_view(actor: Actor, view: View, partition: Partition) -> None:
    """`AccessDenied` unless this actor may see the partition's transcripts so.

    The raw view is its owner's: the user or agent whose partition it is. What belongs to the whole space, or to a
    person who is not calling, is seen raw by nobody but an operator without walls, who could read the store itself.
    """
    if view is View.RAW_OWNER_ONLY and not (owns(actor, partition) or runs_the_store(actor)):
        raise AccessDenied(f"{actor.kind} {actor.id!r} may not see this transcript raw; ask for another view")
    if view is View.OPERATOR_AUDIT and actor.kind is not ActorKind.OPERATOR:
        raise AccessDenied(f"{view} is for operators; ask for another view")


def owns(actor: Actor, partition: Partition) -> bool:
    """Whether what is private there is the actor's own."""
    return _OWNED_BY.get(actor.kind) == partition.kind and actor.id == partition.owner


def runs_the_store(actor: Actor) -> bool:
    """Whether the actor could read the store itself."""
    return actor.kind is ActorKind.OPERATOR and actor.space is None
