"""Who may do what: every cell of the table, kind of actor by role by action. What is not written here is refused."""

from __future__ import annotations

import pytest

from holdfast.domain.access import Action, Actor, ActorKind, Role, authorize
from holdfast.domain.scope import Partition, PartitionKind, Scope
from holdfast.errors import AccessDenied

READS = set(
    """search recall explain get list browse history jobs stats list_resources get_resource project inspect replay
    export close capabilities replay_transcript export_transcript query profile resolve_binding""".split()
)
WRITES = set(
    """add flush remember add_resource write maintain commit_transcript finalize_turn_and_maintain capture
    record_upsert deliver_hook""".split()
)
TAKES_AWAY = set("correct forget_preview forget delete_resource request_transcript_lifecycle import".split())
UPKEEP = set("rebuild verify work recover repair_transcript export_space import_space".split())
USERS = set("create_user revoke_user list_users".split())
CONTROL = set(
    """read_bindings manage_bindings read_operations read_deliveries manage_deliveries manage_jobs read_costs
    manage_costs""".split()
)
AUDITS = set(
    """read_operations read_costs read_bindings resolve_binding read_deliveries jobs stats list_users""".split()
)
OWNERS = READS | WRITES | TAKES_AWAY
EVERYTHING = OWNERS | UPKEEP | USERS | CONTROL
MAY: dict[tuple[ActorKind, Role | None], set[str]] = {
    (ActorKind.OPERATOR, None): EVERYTHING,
    (ActorKind.OPERATOR, Role.ADMIN): EVERYTHING,
    (ActorKind.OPERATOR, Role.AUDITOR): AUDITS,
    (ActorKind.SYSTEM, None): EVERYTHING,
    (ActorKind.USER, None): OWNERS,
    (ActorKind.USER, Role.MEMBER): OWNERS,
    (ActorKind.USER, Role.READER): READS,
    (ActorKind.AGENT, None): OWNERS,
    (ActorKind.AGENT, Role.CURATOR): OWNERS,
    (ActorKind.AGENT, Role.MEMBER): READS | WRITES,
    (ActorKind.AGENT, Role.READER): READS,
    (ActorKind.DEVICE, None): {"add", "flush", "search", "recall", "get"},
}
OWN = {ActorKind.USER: {"subject": "it"}, ActorKind.DEVICE: {"subject": "it"}, ActorKind.AGENT: {"agent": "it"}}


def test_every_action_stands_in_the_table() -> None:
    assert {str(action) for action in Action} == EVERYTHING


@pytest.mark.parametrize("role", [None, *Role])
@pytest.mark.parametrize("kind", ActorKind)
def test_an_actor_may_do_what_its_kind_and_role_may_and_nothing_else(kind: ActorKind, role: Role | None) -> None:
    actor = Actor(kind, "it", "acme", role=role)
    scope = Scope(space="acme", **OWN.get(kind, {}))
    may = MAY.get((kind, role), set())
    for action in Action:
        if action in may:
            grant = authorize(actor, action, scope)
            assert (grant.actor, grant.action, grant.scope) == (actor, action, scope)
            continue
        with pytest.raises(AccessDenied, match=f"may not {action}"):
            authorize(actor, action, scope)


def test_a_role_opens_no_other_scope() -> None:
    for actor, scope in [
        (Actor(ActorKind.OPERATOR, "boss", "acme", role=Role.ADMIN), Scope(space="globex")),
        (Actor(ActorKind.AGENT, "bot", "acme", role=Role.CURATOR), Scope(space="acme", agent="other")),
        (Actor(ActorKind.USER, "ana", "acme", role=Role.MEMBER), Scope(space="acme", subject="bob")),
    ]:
        with pytest.raises(AccessDenied):
            authorize(actor, Action.RESOLVE_BINDING, scope)


def test_what_is_done_beneath_decides_the_reach_and_not_the_permission() -> None:
    agent = Actor(ActorKind.AGENT, "bot", "acme", role=Role.MEMBER)
    scope = Scope(space="acme", agent="bot")
    own = Partition("acme", PartitionKind.AGENT, "bot")
    shared = Partition("acme", PartitionKind.SHARED)
    assert authorize(agent, Action.CAPTURE, scope, beneath=Action.ADD).partitions == {own}
    assert authorize(agent, Action.QUERY, scope, beneath=Action.SEARCH).partitions == {own, shared}
    # Whoever may not do it may not do it by way of something else, nor in somebody else's scope.
    with pytest.raises(AccessDenied):
        authorize(agent, Action.FORGET, scope, beneath=Action.SEARCH)
    with pytest.raises(AccessDenied):
        authorize(agent, Action.QUERY, Scope(space="acme", agent="other"), beneath=Action.SEARCH)
