"""Access to views: every kind of actor, every partition, every view."""

from __future__ import annotations

from itertools import product

import pytest

from holdfast.domain.access import LOCAL_OPERATOR, SYSTEM, Actor, ActorKind, check_view
from holdfast.domain.scope import Partition, PartitionKind
from holdfast.domain.transcript_turns import View
from holdfast.errors import AccessDenied

ANA = Partition("default", PartitionKind.SUBJECT, "ana")
BOT = Partition("default", PartitionKind.AGENT, "bot")
SHARED = Partition("default", PartitionKind.SHARED)
ACTORS = {
    "local": LOCAL_OPERATOR,
    "walled": Actor(ActorKind.OPERATOR, "south", space="default"),
    "worker": SYSTEM,
    "ana": Actor(ActorKind.USER, "ana"),
    "ben": Actor(ActorKind.USER, "ben"),
    "bot": Actor(ActorKind.AGENT, "bot", subjects=frozenset({"ana"})),
    "named like her": Actor(ActorKind.AGENT, "ana"),
    "device": Actor(ActorKind.DEVICE, "ana"),
}
RAW = {("local", ANA), ("local", BOT), ("local", SHARED), ("ana", ANA), ("bot", BOT)}
AUDIT = {"local", "walled"}


@pytest.mark.parametrize(("name", "partition", "view"), [*product(ACTORS, (ANA, BOT, SHARED), View)])
def test_a_view_is_for_those_whose_it_is(name: str, partition: Partition, view: View) -> None:
    allowed = True
    if view is View.RAW_OWNER_ONLY:
        allowed = (name, partition) in RAW
    elif view is View.OPERATOR_AUDIT:
        allowed = name in AUDIT
    if allowed:
        check_view(ACTORS[name], view, partition)
    else:
        with pytest.raises(AccessDenied, match="ask for another view"):
            check_view(ACTORS[name], view, partition)
