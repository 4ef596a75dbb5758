"""Access control: the whole permission table, and the boundaries between scopes."""

from __future__ import annotations

import itertools

import pytest

from holdfast.domain.access import LOCAL_OPERATOR, SYSTEM, Action, Actor, ActorKind, Grant, authorize
from holdfast.domain.scope import EVERYWHERE, Partition, PartitionKind, Scope
from holdfast.errors import AccessDenied, InvalidInput

OWN = {
    ActorKind.OPERATOR: Scope(subject="ana"),
    ActorKind.SYSTEM: Scope(subject="ana"),
    ActorKind.USER: Scope(subject="ana"),
    ActorKind.DEVICE: Scope(subject="ana"),
    ActorKind.AGENT: Scope(agent="ana"),
}
UPKEEP = {Action.REBUILD, Action.VERIFY, Action.WORK}
OF_A_SPACE = {Action.RECOVER, Action.REPAIR_TRANSCRIPT, Action.EXPORT_SPACE, Action.IMPORT_SPACE}
USERS = {Action.CREATE_USER, Action.REVOKE_USER, Action.LIST_USERS}
CONTROL = {
    Action.READ_BINDINGS, Action.MANAGE_BINDINGS, Action.READ_OPERATIONS, Action.READ_DELIVERIES,
    Action.MANAGE_DELIVERIES, Action.MANAGE_JOBS, Action.READ_COSTS, Action.MANAGE_COSTS,
}  # fmt: skip
DECISIONS = {Action.APPROVE_PROPOSAL, Action.REJECT_PROPOSAL}
# Per kind of actor: the actions denied even in its own scope.
DENIED: dict[ActorKind, set[Action]] = {
    ActorKind.OPERATOR: set(),
    ActorKind.SYSTEM: DECISIONS,
    ActorKind.USER: UPKEEP | USERS | OF_A_SPACE | CONTROL | DECISIONS | {Action.EVENTS},
    ActorKind.AGENT: UPKEEP | USERS | OF_A_SPACE | CONTROL | DECISIONS | {Action.EVENTS},
    ActorKind.DEVICE: set(Action) - {Action.ADD, Action.FLUSH, Action.SEARCH, Action.RECALL, Action.GET},
}
READS = {
    Action.SEARCH, Action.RECALL, Action.EXPLAIN, Action.GET, Action.LIST, Action.HISTORY, Action.JOBS, Action.STATS,
    Action.BROWSE, Action.VERIFY, Action.LIST_USERS, Action.LIST_RESOURCES, Action.GET_RESOURCE, Action.PROJECT,
    Action.INSPECT, Action.REPLAY, Action.EXPORT, Action.CLOSE, Action.CAPABILITIES, Action.REPLAY_TRANSCRIPT,
    Action.EXPORT_TRANSCRIPT, Action.QUERY, Action.PROFILE, Action.RESOLVE_BINDING, Action.LIST_SKILLS,
    Action.GET_SKILL, Action.VALIDATE_PROPOSAL, Action.LIST_PROPOSALS, Action.GET_PROPOSAL,
    Action.LIST_TOOL_REGISTRIES, Action.GET_TOOL_REGISTRY,
}  # fmt: skip
SHARED = Partition("default", PartitionKind.SHARED)
ANA = Partition("default", PartitionKind.SUBJECT, "ana")
BOT = Partition("default", PartitionKind.AGENT, "bot")


def test_the_table_has_every_kind_of_actor() -> None:
    assert set(DENIED) == set(OWN) == set(ActorKind)


IN_WORDS = {
    Action.RECORD_UPSERT: "write records",
    Action.PROFILE: "read profiles",
    Action.HISTORY: "see the history",
    Action.JOBS: "see jobs",
    Action.STATS: "see figures",
    Action.EVENTS: "see the event log",
    Action.FORGET_PREVIEW: "preview what would be forgotten",
    Action.APPROVE_PROPOSAL: "approve proposals",
    Action.REJECT_PROPOSAL: "reject proposals",
}


@pytest.mark.parametrize(("kind", "action"), list(itertools.product(ActorKind, Action)))
def test_each_kind_of_actor_may_do_what_the_table_says(kind: ActorKind, action: Action) -> None:
    actor = Actor(kind, "ana")
    if action in DENIED[kind]:
        with pytest.raises(AccessDenied) as told:
            authorize(actor, action, OWN[kind])
        words = IN_WORDS.get(action) or action.replace("_", " ")
        assert str(told.value) == f"{kind}s may not {words}; ask an operator"
    else:
        grant = authorize(actor, action, OWN[kind])
        assert (grant.actor, grant.action, grant.scope) == (actor, action, OWN[kind])


@pytest.mark.parametrize(
    "action", sorted(set(Action) - UPKEEP - USERS - OF_A_SPACE - CONTROL - DECISIONS - {Action.EVENTS})
)
def test_reads_reach_what_is_shared_and_writes_only_ones_own(action: Action) -> None:
    grant = authorize(Actor(ActorKind.USER, "ana"), action, Scope(subject="ana"))
    assert grant.partitions == ({ANA, SHARED} if action in READS else {ANA})
    assert grant.reaches(SHARED) == (action in READS)
    assert not grant.reaches(Partition("default", PartitionKind.SUBJECT, "bob"))
    assert not grant.reaches(Partition("other", PartitionKind.SUBJECT, "ana"))


@pytest.mark.parametrize("action", [Action.PROJECT, Action.INSPECT])
def test_a_model_is_shown_nobodys_memory_where_nobody_was_named(action: Action) -> None:
    assert authorize(LOCAL_OPERATOR, action, Scope()).partitions == {SHARED}
    assert authorize(LOCAL_OPERATOR, action, Scope(subject="ana")).partitions == {ANA, SHARED}
    assert authorize(LOCAL_OPERATOR, Action.SEARCH, Scope()).partitions is None


@pytest.mark.parametrize("kind", [ActorKind.USER, ActorKind.DEVICE])
@pytest.mark.parametrize(
    "scope", [Scope(), Scope(subject="bob"), Scope(agent="ana"), Scope(subject="ana", agent="bot"), Scope(app="ana")]
)
def test_a_user_and_a_device_act_for_their_own_subject_alone(kind: ActorKind, scope: Scope) -> None:
    with pytest.raises(AccessDenied, match="own scope"):
        authorize(Actor(kind, "ana"), Action.SEARCH, scope)


def test_an_agent_acts_for_itself_and_for_whoever_is_mounted_on_it() -> None:
    agent = Actor(ActorKind.AGENT, "bot", subjects=frozenset({"ana"}))
    assert authorize(agent, Action.SEARCH, Scope(agent="bot")).partitions == {BOT, SHARED}
    assert authorize(agent, Action.SEARCH, Scope(agent="bot", subject="ana")).partitions == {ANA, BOT, SHARED}
    assert authorize(agent, Action.ADD, Scope(agent="bot", subject="ana")).partitions == {ANA}
    assert authorize(agent, Action.ADD, Scope(agent="bot")).partitions == {BOT}
    for scope in (Scope(), Scope(subject="ana"), Scope(agent="other"), Scope(agent="bot", subject="bob")):
        with pytest.raises(AccessDenied, match="own scope"):
            authorize(agent, Action.SEARCH, scope)


@pytest.mark.parametrize("kind", ActorKind)
def test_nobody_leaves_the_space_that_walls_them_in(kind: ActorKind) -> None:
    actor, own = Actor(kind, "ana", space="home"), OWN[kind]
    inside = Scope(space="home", subject=own.subject, agent=own.agent)
    assert authorize(actor, Action.SEARCH, inside).scope == inside
    for space in ("away", "default", "hom", "home "):
        with pytest.raises(AccessDenied):
            authorize(actor, Action.SEARCH, Scope(space=space, subject=own.subject, agent=own.agent))


@pytest.mark.parametrize("kind", [ActorKind.USER, ActorKind.DEVICE, ActorKind.AGENT])
def test_without_a_space_of_their_own_they_are_walled_into_the_default_one(kind: ActorKind) -> None:
    own = OWN[kind]
    with pytest.raises(AccessDenied):
        authorize(Actor(kind, "ana"), Action.SEARCH, Scope(space="away", subject=own.subject, agent=own.agent))


@pytest.mark.parametrize("action", Action)
def test_over_all_spaces_at_once_an_operator_without_walls_only_looks_after_the_store(action: Action) -> None:
    scope = Scope(space=EVERYWHERE)
    if action not in DECISIONS:
        assert authorize(SYSTEM, action, scope).everywhere
    allowed = UPKEEP | {Action.JOBS, Action.STATS, Action.EVENTS}
    if action in allowed:
        assert authorize(LOCAL_OPERATOR, action, scope).everywhere
    else:
        with pytest.raises(AccessDenied, match="over all spaces"):
            authorize(LOCAL_OPERATOR, action, scope)
    with pytest.raises(AccessDenied):
        authorize(Actor(ActorKind.OPERATOR, "warden", space="home"), action, scope)


def test_an_operator_who_names_nobody_reaches_all_of_one_space() -> None:
    grant = authorize(LOCAL_OPERATOR, Action.SEARCH, Scope())
    assert grant.partitions is None
    assert grant.reaches(ANA)
    assert not grant.reaches(Partition("other", PartitionKind.SHARED))


@pytest.mark.parametrize("action", [Action.ADD, Action.FLUSH, Action.FORGET_PREVIEW, Action.FORGET])
def test_a_conversation_of_nobody_is_not_everybodys_of_that_name(action: Action) -> None:
    grant = authorize(LOCAL_OPERATOR, action, Scope(conversation="default"))
    assert grant.partitions == {SHARED}
    assert not grant.reaches(ANA)


def test_a_refusal_is_the_same_whether_the_space_exists_or_not() -> None:
    def told(space: str) -> str:
        with pytest.raises(AccessDenied) as refused:
            authorize(Actor(ActorKind.USER, "ana"), Action.GET, Scope(space=space, subject="ana"))
        return str(refused.value)

    assert told("a space") == told("another one")


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "user"}, {"kind": None}, {"id": ""}, {"id": " "}, {"id": "\ud800"}, {"id": None}, {"space": ""},
        {"space": 5}, {"subjects": "ana"}, {"subjects": ["ana"]}, {"subjects": None}, {"subjects": frozenset({""})},
    ],
)  # fmt: skip
def test_an_actor_must_be_somebody(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="actor"):
        Actor(**{"kind": ActorKind.USER, "id": "ana", **wrong})  # type: ignore[arg-type]


def test_an_actor_prints_as_its_kind_and_id() -> None:
    assert str(Actor(ActorKind.AGENT, "bot")) == "agent:bot"


def test_a_grant_cannot_be_changed() -> None:
    grant = authorize(LOCAL_OPERATOR, Action.SEARCH, Scope(subject="ana"))
    with pytest.raises(AttributeError):
        grant.partitions = None  # type: ignore[misc]
    assert isinstance(grant, Grant)
