"""Authorization. Only `authorize` decides whether an actor may do an action in a scope, and only it makes a `Grant`.

`check_view` decides who may use a view of a transcript; `redaction.py` decides the content of each view.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, StrEnum, auto
from typing import Self

from holdfast.domain.checks import check_enum
from holdfast.domain.presentable import Presentable
from holdfast.domain.scope import DEFAULT_SPACE, EVERYWHERE, Partition, PartitionKind, Scope, check_part
from holdfast.domain.transcript_turns import View
from holdfast.errors import AccessDenied, InvalidInput


class ActorKind(StrEnum):
    """The kind of a caller."""

    OPERATOR = "operator"
    USER = "user"
    AGENT = "agent"
    DEVICE = "device"
    SYSTEM = "system"


class ActorRole(StrEnum):
    """The role of a credential. It narrows the permissions of its kind of actor."""

    ADMIN = "admin"  # operators: everything in their space
    AUDITOR = "auditor"  # operators: the audit trail, costs, jobs and bindings, but no memory content
    MEMBER = "member"  # agents and users: read, capture and note; users also correct and forget their own
    CURATOR = "curator"  # agents: a member who may correct and forget
    READER = "reader"  # agents and users: read


@dataclass(frozen=True, slots=True)
class Actor(Presentable):
    """The caller.

    `space` confines the actor; only operators and the system may have none. A user or device acts for the subject
    `id`; an agent for the agent `id`, and for its mounted subjects. Without a `role` an actor has all permissions of
    its kind.
    """

    kind: ActorKind
    id: str
    space: str | None = None
    subjects: frozenset[str] = frozenset()
    role: ActorRole | None = None

    def __post_init__(self) -> None:
        # "agent" == ActorKind.AGENT, so compare types, not values.
        check_enum(self.kind, ActorKind, "actor.kind")
        check_part("actor.id", self.id)
        if self.space is not None:
            check_part("actor.space", self.space)
        checked_names(self.subjects, "actor.subjects")

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


def checked_names(names: object, field: str) -> frozenset[str]:
    # A string would pass as a collection: `in` would match every part of a name.
    if not isinstance(names, frozenset):
        raise InvalidInput(field, f"expected a frozenset of names, got {type(names).__name__}")
    for name in names:
        check_part(field, name)
    return names


LOCAL_OPERATOR = Actor(ActorKind.OPERATOR, "local")
SYSTEM = Actor(ActorKind.SYSTEM, "worker")


class Trait(Flag):
    """Traits of an action, which decide who may do it and what it reaches."""

    NONE = 0
    READ = auto()
    RUNTIME = auto()  # of a `MemoryRuntime`, which also has `recall`
    CONTROL_PLANE = auto()  # of the control plane, which also has some actions of the library, such as `list`
    COMPANY = auto()  # administration of a space: bindings, the audit trail, deliveries, jobs and costs


_READ = Trait.READ
_RUNTIME = Trait.RUNTIME
_CONTROL = Trait.CONTROL_PLANE
_COMPANY = Trait.CONTROL_PLANE | Trait.COMPANY


class Action(StrEnum):
    """An action of a caller, which needs a grant."""

    traits: Trait

    def __new__(cls, name: str, traits: Trait = Trait.NONE) -> Self:
        action = str.__new__(cls, name)
        action._value_ = name
        action.traits = traits
        return action

    ADD = "add"
    FLUSH = "flush"
    SEARCH = "search", _READ
    RECALL = "recall", _READ
    EXPLAIN = "explain", _READ
    GET = "get", _READ
    LIST = "list", _READ
    BROWSE = "browse", _READ
    HISTORY = "history", _READ
    REMEMBER = "remember"
    CORRECT = "correct"
    REVERT = "revert"
    FORGET_PREVIEW = "forget_preview"
    FORGET = "forget"
    JOBS = "jobs", _READ
    STATS = "stats", _READ
    EVENTS = "events", _READ
    REBUILD = "rebuild"
    VERIFY = "verify", _READ
    WORK = "work"
    CREATE_USER = "create_user"
    REVOKE_USER = "revoke_user"
    LIST_USERS = "list_users", _READ
    ADD_RESOURCE = "add_resource"
    LIST_RESOURCES = "list_resources", _READ
    GET_RESOURCE = "get_resource", _READ
    DELETE_RESOURCE = "delete_resource"
    WRITE = "write", _RUNTIME
    PROJECT = "project", _RUNTIME | _READ
    MAINTAIN = "maintain", _RUNTIME
    INSPECT = "inspect", _RUNTIME | _READ
    REPLAY = "replay", _RUNTIME | _READ
    EXPORT = "export", _RUNTIME | _READ
    IMPORT = "import", _RUNTIME
    RECOVER = "recover", _RUNTIME
    CLOSE = "close", _RUNTIME | _READ
    CAPABILITIES = "capabilities", _RUNTIME | _READ
    COMMIT_TRANSCRIPT = "commit_transcript", _RUNTIME
    FINALIZE_TURN = "finalize_turn_and_maintain", _RUNTIME
    REPLAY_TRANSCRIPT = "replay_transcript", _RUNTIME | _READ
    TRANSCRIPT_LIFECYCLE = "request_transcript_lifecycle", _RUNTIME
    REPAIR_TRANSCRIPT = "repair_transcript", _RUNTIME | _READ
    EXPORT_TRANSCRIPT = "export_transcript", _RUNTIME | _READ
    EXPORT_SPACE = "export_space", _RUNTIME | _READ
    IMPORT_SPACE = "import_space", _RUNTIME
    LIST_SKILLS = "list_runtime_skills", _RUNTIME | _READ
    GET_SKILL = "get_runtime_skill", _RUNTIME | _READ
    EDIT_SKILL = "edit_runtime_skill", _RUNTIME
    SET_SKILL_ENABLED = "set_runtime_skill_enabled", _RUNTIME
    DELETE_SKILL = "delete_runtime_skill", _RUNTIME
    PROPOSE = "propose", _RUNTIME
    VALIDATE_PROPOSAL = "validate_proposal", _RUNTIME | _READ
    LIST_PROPOSALS = "list_proposals", _RUNTIME | _READ
    GET_PROPOSAL = "get_proposal", _RUNTIME | _READ
    APPROVE_PROPOSAL = "approve_proposal", _RUNTIME
    REJECT_PROPOSAL = "reject_proposal", _RUNTIME
    UPSERT_TOOL_REGISTRY = "upsert_agent_tool_registry", _RUNTIME
    LIST_TOOL_REGISTRIES = "list_agent_tool_registries", _RUNTIME | _READ
    GET_TOOL_REGISTRY = "get_agent_tool_registry", _RUNTIME | _READ
    DELETE_TOOL_REGISTRY = "delete_agent_tool_registry", _RUNTIME
    CAPTURE = "capture", _CONTROL
    RECORD_UPSERT = "record_upsert", _CONTROL
    QUERY = "query", _CONTROL | _READ
    PROFILE = "profile", _CONTROL | _READ
    DELIVER_HOOK = "deliver_hook", _CONTROL
    RESOLVE_BINDING = "resolve_binding", _CONTROL | _READ
    READ_BINDINGS = "read_bindings", _COMPANY | _READ
    MANAGE_BINDINGS = "manage_bindings", _COMPANY
    READ_OPERATIONS = "read_operations", _COMPANY | _READ
    READ_DELIVERIES = "read_deliveries", _COMPANY | _READ
    MANAGE_DELIVERIES = "manage_deliveries", _COMPANY
    MANAGE_JOBS = "manage_jobs", _COMPANY
    READ_COSTS = "read_costs", _COMPANY | _READ
    MANAGE_COSTS = "manage_costs", _COMPANY


def _actions_with(trait: Trait) -> frozenset[Action]:
    return frozenset(action for action in Action if trait in action.traits)


OF_THE_RUNTIME = _actions_with(Trait.RUNTIME)
OF_THE_CONTROL_PLANE = _actions_with(Trait.CONTROL_PLANE)
_READS = _actions_with(Trait.READ)
# Actions on a whole store, for an operator without a space.
_STOREWIDE = frozenset({Action.JOBS, Action.STATS, Action.EVENTS, Action.REBUILD, Action.VERIFY, Action.WORK})
# A conversation belongs to one subject, one agent, or no one. Without a subject these actions mean the one that belongs
# to no one, as `add` does, not every conversation of that name.
_ADDRESSED = frozenset({Action.ADD, Action.FLUSH, Action.FORGET_PREVIEW, Action.FORGET})
# These cover only the memory that the scope names, even if it names no owner.
_OF_SKILLS = frozenset({Action.LIST_SKILLS, Action.GET_SKILL})
_CHANGES_SKILLS = frozenset({Action.EDIT_SKILL, Action.SET_SKILL_ENABLED, Action.DELETE_SKILL})
OF_TOOLS = frozenset(
    {Action.UPSERT_TOOL_REGISTRY, Action.LIST_TOOL_REGISTRIES} | {Action.GET_TOOL_REGISTRY, Action.DELETE_TOOL_REGISTRY}
)
# Proposals are made by anyone who may write, and decided by operators.
_DECIDES = frozenset({Action.APPROVE_PROPOSAL, Action.REJECT_PROPOSAL})
_OF_PROPOSALS = _DECIDES | {Action.PROPOSE, Action.VALIDATE_PROPOSAL, Action.LIST_PROPOSALS, Action.GET_PROPOSAL}
_OF_ONE_MEMORY = frozenset({Action.PROJECT, Action.INSPECT}) | _OF_SKILLS | _CHANGES_SKILLS | OF_TOOLS | _OF_PROPOSALS
_USERS = frozenset({Action.CREATE_USER, Action.REVOKE_USER, Action.LIST_USERS})
# Maintenance of the store or of a whole space.
_UPKEEP = frozenset(
    {Action.REBUILD, Action.VERIFY, Action.WORK, Action.RECOVER, Action.REPAIR_TRANSCRIPT}
    | {Action.EXPORT_SPACE, Action.IMPORT_SPACE}
)
_OWNERS = frozenset(Action) - _UPKEEP - _USERS - _DECIDES - {Action.EVENTS} - _actions_with(Trait.COMPANY)
_ALLOWED: dict[ActorKind, frozenset[Action]] = {
    ActorKind.OPERATOR: frozenset(Action),
    ActorKind.SYSTEM: frozenset(Action) - _DECIDES,
    ActorKind.USER: _OWNERS,
    ActorKind.AGENT: _OWNERS,
    ActorKind.DEVICE: frozenset({Action.ADD, Action.FLUSH, Action.SEARCH, Action.RECALL, Action.GET}),
}
# Actions that remove or change memory.
_TAKES_AWAY = frozenset(
    {Action.CORRECT, Action.REVERT, Action.FORGET_PREVIEW, Action.FORGET, Action.DELETE_RESOURCE}
    | {Action.TRANSCRIPT_LIFECYCLE, Action.IMPORT, Action.DELETE_TOOL_REGISTRY}
    | _CHANGES_SKILLS
)
_AUDITS = frozenset(
    {Action.READ_OPERATIONS, Action.READ_COSTS, Action.READ_BINDINGS, Action.RESOLVE_BINDING, Action.READ_DELIVERIES}
    | {Action.JOBS, Action.STATS, Action.EVENTS, Action.LIST_USERS}
)
# A role that is not listed for its kind of actor permits nothing.
_OF_ROLE: dict[tuple[ActorKind, ActorRole], frozenset[Action]] = {
    (ActorKind.OPERATOR, ActorRole.ADMIN): frozenset(Action),
    (ActorKind.OPERATOR, ActorRole.AUDITOR): _AUDITS,
    (ActorKind.AGENT, ActorRole.CURATOR): _OWNERS,
    (ActorKind.AGENT, ActorRole.MEMBER): _OWNERS - _TAKES_AWAY,
    (ActorKind.AGENT, ActorRole.READER): _OWNERS & _READS,
    (ActorKind.USER, ActorRole.MEMBER): _OWNERS,
    (ActorKind.USER, ActorRole.READER): _OWNERS & _READS,
}


@dataclass(frozen=True, slots=True)
class Grant:
    """Proof that an actor may do an action in a scope. No transaction opens without one.

    `partitions` are the reachable ones; None means every partition of the scope's space, or of all spaces if the
    scope is `EVERYWHERE`.
    """

    actor: Actor
    action: Action
    scope: Scope
    partitions: frozenset[Partition] | None

    @property
    def everywhere(self) -> bool:
        return self.scope.space == EVERYWHERE

    def reaches(self, partition: Partition) -> bool:
        if self.partitions is None:
            return self.everywhere or partition.space == self.scope.space
        return partition in self.partitions


def authorize(actor: Actor, action: Action, scope: Scope, *, beneath: Action | None = None) -> Grant:
    """Return a grant, or raise `AccessDenied`. A refusal never reveals whether something exists.

    `beneath` is a nested action that carries out `action`: then `action` decides the permission, and `beneath` what
    the grant reaches.
    """
    if action not in _ALLOWED[actor.kind]:
        raise AccessDenied(f"{actor.kind}s may not {_describe_action(action)}; ask an operator")
    if actor.role is not None and action not in _OF_ROLE.get((actor.kind, actor.role), frozenset()):
        above = ActorRole.ADMIN if actor.kind is ActorKind.OPERATOR else ActorKind.OPERATOR
        problem = f"{actor.kind} {actor.id!r} has the role {actor.role} and may not {_describe_action(action)}"
        raise AccessDenied(f"{problem}; ask an {above}")
    action = beneath or action
    if scope.space == EVERYWHERE:
        _require_store(actor, action)
    reachable = readable_partitions(scope) if action in _READS else frozenset({scope.partition})
    if actor.kind in (ActorKind.OPERATOR, ActorKind.SYSTEM):
        require_space(actor, scope)
        narrowed = scope.subject is not None or scope.agent is not None
        narrowed |= action in _OF_ONE_MEMORY or (action in _ADDRESSED and scope.conversation is not None)
        return Grant(actor, action, scope, reachable if narrowed else None)
    require_space(actor, scope)
    _require_own(actor, scope)
    return Grant(actor, action, scope, reachable)


# The words after "may not" in an error, where they differ from the name of the action.
_WORDS = {
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


def _describe_action(action: Action) -> str:
    return _WORDS.get(action) or action.replace("_", " ")


def storewide_grant() -> Grant:
    """Return the system's grant for background work in every space."""
    return authorize(SYSTEM, Action.WORK, Scope(space=EVERYWHERE))


def is_read(action: Action) -> bool:
    return action in _READS


def readable_partitions(scope: Scope) -> frozenset[Partition]:
    """Return the partitions of a read: the shared one, and those of the subject and the agent if named."""
    partitions = {Partition(scope.space, PartitionKind.SHARED)}
    if scope.subject is not None:
        partitions.add(Partition(scope.space, PartitionKind.SUBJECT, scope.subject))
    if scope.agent is not None:
        partitions.add(Partition(scope.space, PartitionKind.AGENT, scope.agent))
    return frozenset(partitions)


def _require_store(actor: Actor, action: Action) -> None:
    if actor.kind is ActorKind.SYSTEM:
        return
    if actor.kind is not ActorKind.OPERATOR or actor.space is not None or action not in _STOREWIDE:
        raise AccessDenied(
            f"{actor.kind} {actor.id!r} may not {_describe_action(action)} over all spaces; name one space"
        )


def same_space(actor: Actor, scope: Scope) -> bool:
    """True if the scope is in the actor's space, or the actor is not confined to one."""
    overseer = actor.kind in (ActorKind.OPERATOR, ActorKind.SYSTEM)
    return (actor.space or (None if overseer else DEFAULT_SPACE)) in (None, scope.space)


def require_space(actor: Actor, scope: Scope) -> None:
    """Raise `AccessDenied` if the scope is in another space than the actor's own."""
    if not same_space(actor, scope):
        raise AccessDenied(f"{actor.kind} {actor.id!r} has no access to this space; use its own space")


def _require_own(actor: Actor, scope: Scope) -> None:
    if actor.kind is ActorKind.AGENT:
        own = scope.agent == actor.id and (scope.subject is None or scope.subject in actor.subjects)
    else:
        own = scope.subject == actor.id and scope.agent is None
    if not own:
        raise AccessDenied(f"{actor.kind} {actor.id!r} may only act in its own scope; give its own subject or agent")


def check_skill_approval(actor: Actor) -> None:
    """Raise `AccessDenied` unless this actor may enable a skill that was learned from external content."""
    if actor.kind is not ActorKind.OPERATOR:
        raise AccessDenied(f"{actor.kind} {actor.id!r} may not enable a skill that needs an approval; ask an operator")


def check_tool_note(actor: Actor) -> None:
    """Raise `AccessDenied` unless this actor's note raises the confidence in a tool."""
    if actor.kind is not ActorKind.OPERATOR:
        raise AccessDenied(f"{actor.kind} {actor.id!r} may not give an operator_note; leave it out, or ask an operator")


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
