"""Access to the views of a transcript. The content of each view is decided in `redaction.py`."""

from __future__ import annotations

from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.scope import Partition, PartitionKind
from holdfast.domain.transcript_turns import View
from holdfast.errors import AccessDenied

_OWNED_BY = {ActorKind.USER: PartitionKind.SUBJECT, ActorKind.AGENT: PartitionKind.AGENT}


def check_view(actor: Actor, view: View, partition: Partition) -> None:
    """Raise `AccessDenied` unless this actor may use the view on the partition's transcripts.

    The raw view is for the owner of the partition: a user or an agent. Raw transcripts of the whole space, or of
    another person, are only for an operator without a space, who could read the store itself.
    """
    if view is View.RAW_OWNER_ONLY and not (owns_partition(actor, partition) or can_read_store(actor)):
        raise AccessDenied(f"{actor.kind} {actor.id!r} may not see this transcript raw; ask for another view")
    if view is View.OPERATOR_AUDIT and actor.kind is not ActorKind.OPERATOR:
        raise AccessDenied(f"{view} is for operators; ask for another view")


def owns_partition(actor: Actor, partition: Partition) -> bool:
    """True if the actor owns the partition."""
    return _OWNED_BY.get(actor.kind) == partition.kind and actor.id == partition.owner


def can_read_store(actor: Actor) -> bool:
    """True if the actor could read the store itself."""
    return actor.kind is ActorKind.OPERATOR and actor.space is None
