"""Who may do what, where. `authorize` is the only place that decides, and the only one that makes a `Grant`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.domain.scope import DEFAULT_SPACE, EVERYWHERE, Partition, PartitionKind, Scope, check_part
from holdfast.errors import AccessDenied, InvalidInput


class ActorKind(StrEnum):
    OPERATOR = "operator"
    USER = "user"
    AGENT = "agent"
    DEVICE = "device"
    SYSTEM = "system"


class Role(StrEnum):
    """What a credential is for; it narrows what its kind of actor may do."""

    ADMIN = "admin"  # operators: everything in their space
    AUDITOR = "auditor"  # operators: the trail, costs, jobs and bindings, and nothing that memory says
    MEMBER = "member"  # agents and users: read, capture and note; users also correct and forget what is theirs
    CURATOR = "curator"  # agents: a member who may correct and forget
    READER = "reader"  # agents and users: read


@dataclass(frozen=True, slots=True)
class Actor:
    """Who is calling.

    `space` walls the actor in; only operators and the system may have none. A user or device speaks for the subject
    `id`; an agent for the agent `id`, and for the subjects that are mounted on it. Without a `role` an actor may do
    whatever its kind may.
    """

    kind: ActorKind
    id: str
    space: str | None = None
    subjects: frozenset[str] = frozenset()
    role: Role | None = None

    def __post_init__(self) -> None:
        _check_kind(self.kind)
        check_part("actor.id", self.id)
        if self.space is not None:
            check_part("actor.space", self.space)
        _check_subjects(self.subjects)

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


def _check_kind(kind: object) -> None:
    # "agent" is equal to ActorKind.AGENT, and is not it.
    if not isinstance(kind, ActorKind):
        raise InvalidInput("actor.kind", f"expected an ActorKind ({', '.join(ActorKind)}), got {type(kind).__name__}")


def _check_subjects(subjects: object) -> None:
    # In a text, every part of a name would be found.
    if not isinstance(subjects, frozenset):
        raise InvalidInput("actor.subjects", f"expected a frozenset of names, got {type(subjects).__name__}")
    for subject in subjects:
        check_part("actor.subjects", subject)


LOCAL_OPERATOR = Actor(ActorKind.OPERATOR, "local")
SYSTEM = Actor(ActorKind.SYSTEM, "worker")


class Action(StrEnum):
    ADD = "add"
    FLUSH = "flush"
    SEARCH = "search"
    RECALL = "recall"
    EXPLAIN = "explain"
    GET = "get"
    LIST = "list"
    BROWSE = "browse"
    HISTORY = "history"
    REMEMBER = "remember"
    CORRECT = "correct"
    FORGET_PREVIEW = "forget_preview"
    FORGET = "forget"
    JOBS = "jobs"
    STATS = "stats"
    REBUILD = "rebuild"
    VERIFY = "verify"
    WORK = "work"
    CREATE_USER = "create_user"
    REVOKE_USER = "revoke_user"
    LIST_USERS = "list_users"
    ADD_RESOURCE = "add_resource"
    LIST_RESOURCES = "list_resources"
    GET_RESOURCE = "get_resource"
    DELETE_RESOURCE = "delete_resource"
    WRITE = "write"
    PROJECT = "project"
    MAINTAIN = "maintain"
    INSPECT = "inspect"
    REPLAY = "replay"
    EXPORT = "export"
    IMPORT = "import"
    RECOVER = "recover"
    CLOSE = "close"
    CAPABILITIES = "capabilities"
    COMMIT_TRANSCRIPT = "commit_transcript"
    FINALIZE_TURN = "finalize_turn_and_maintain"
    REPLAY_TRANSCRIPT = "replay_transcript"
    TRANSCRIPT_LIFECYCLE = "request_transcript_lifecycle"
    REPAIR_TRANSCRIPT = "repair_transcript"
    EXPORT_TRANSCRIPT = "export_transcript"
    EXPORT_SPACE = "export_space"
    IMPORT_SPACE = "import_space"
    CAPTURE = "capture"
    RECORD_UPSERT = "record_upsert"
    QUERY = "query"
    PROFILE = "profile"
    DELIVER_HOOK = "deliver_hook"
    RESOLVE_BINDING = "resolve_binding"
    READ_BINDINGS = "read_bindings"
    MANAGE_BINDINGS = "manage_bindings"
    READ_OPERATIONS = "read_operations"
    READ_DELIVERIES = "read_deliveries"
    MANAGE_DELIVERIES = "manage_deliveries"
    MANAGE_JOBS = "manage_jobs"
    READ_COSTS = "read_costs"
    MANAGE_COSTS = "manage_costs"


# What a `MemoryRuntime` does; `recall` besides, which the library has too.
OF_THE_RUNTIME = frozenset(
    {
        Action.WRITE,
        Action.PROJECT,
        Action.MAINTAIN,
        Action.INSPECT,
        Action.REPLAY,
        Action.EXPORT,
        Action.IMPORT,
        Action.RECOVER,
        Action.CLOSE,
        Action.CAPABILITIES,
        Action.COMMIT_TRANSCRIPT,
        Action.FINALIZE_TURN,
        Action.REPLAY_TRANSCRIPT,
        Action.TRANSCRIPT_LIFECYCLE,
        Action.REPAIR_TRANSCRIPT,
        Action.EXPORT_TRANSCRIPT,
        Action.EXPORT_SPACE,
        Action.IMPORT_SPACE,
    }
)
# What is done through the control plane; `list`, `get`, `forget`, `correct` and `explain` besides, as the library does.
OF_THE_CONTROL_PLANE = frozenset(
    {
        Action.CAPTURE,
        Action.RECORD_UPSERT,
        Action.QUERY,
        Action.PROFILE,
        Action.DELIVER_HOOK,
        Action.RESOLVE_BINDING,
        Action.READ_BINDINGS,
        Action.MANAGE_BINDINGS,
        Action.READ_OPERATIONS,
        Action.READ_DELIVERIES,
        Action.MANAGE_DELIVERIES,
        Action.MANAGE_JOBS,
        Action.READ_COSTS,
        Action.MANAGE_COSTS,
    }
)
_READS = frozenset(
    {
        Action.SEARCH,
        Action.RECALL,
        Action.EXPLAIN,
        Action.GET,
        Action.LIST,
        Action.BROWSE,
        Action.HISTORY,
        Action.JOBS,
        Action.STATS,
        Action.VERIFY,
        Action.LIST_USERS,
        Action.LIST_RESOURCES,
        Action.GET_RESOURCE,
        Action.PROJECT,
        Action.INSPECT,
        Action.REPLAY,
        Action.EXPORT,
        Action.CLOSE,
        Action.CAPABILITIES,
        Action.REPLAY_TRANSCRIPT,
        Action.REPAIR_TRANSCRIPT,
        Action.EXPORT_TRANSCRIPT,
        Action.EXPORT_SPACE,
        Action.QUERY,
        Action.PROFILE,
        Action.RESOLVE_BINDING,
        Action.READ_BINDINGS,
        Action.READ_OPERATIONS,
        Action.READ_DELIVERIES,
        Action.READ_COSTS,
    }
)
# What an operator without walls may do to a whole store at once.
_STOREWIDE = frozenset({Action.JOBS, Action.STATS, Action.REBUILD, Action.VERIFY, Action.WORK})
# A conversation belongs to one subject, one agent, or nobody. Without a subject these mean nobody's, as `add` does, not
# whatever everybody calls by that name.
_ADDRESSED = frozenset({Action.ADD, Action.FLUSH, Action.FORGET_PREVIEW, Action.FORGET})
# What is shown to a model, or about it, is of the memory that was named, and of nobody else's where nobody was.
_OF_ONE_MEMORY = frozenset({Action.PROJECT, Action.INSPECT})
_USERS = frozenset({Action.CREATE_USER, Action.REVOKE_USER, Action.LIST_USERS})
# Looking after the store, or over a whole space.
_UPKEEP = frozenset(
    {Action.REBUILD, Action.VERIFY, Action.WORK, Action.RECOVER, Action.REPAIR_TRANSCRIPT}
    | {Action.EXPORT_SPACE, Action.IMPORT_SPACE}
)
# Looking after a company's memory: what serves whom, what was done, and what it cost.
_CONTROL = frozenset(
    {
        Action.READ_BINDINGS,
        Action.MANAGE_BINDINGS,
        Action.READ_OPERATIONS,
        Action.READ_DELIVERIES,
        Action.MANAGE_DELIVERIES,
        Action.MANAGE_JOBS,
        Action.READ_COSTS,
        Action.MANAGE_COSTS,
    }
)
_OWNERS = frozenset(Action) - _UPKEEP - _USERS - _CONTROL
_ALLOWED: dict[ActorKind, frozenset[Action]] = {
    ActorKind.OPERATOR: frozenset(Action),
    ActorKind.SYSTEM: frozenset(Action),
    ActorKind.USER: _OWNERS,
    ActorKind.AGENT: _OWNERS,
    ActorKind.DEVICE: frozenset({Action.ADD, Action.FLUSH, Action.SEARCH, Action.RECALL, Action.GET}),
}
# What takes memory away, or changes what it says.
_TAKES_AWAY = frozenset(
    {Action.CORRECT, Action.FORGET_PREVIEW, Action.FORGET, Action.DELETE_RESOURCE, Action.TRANSCRIPT_LIFECYCLE}
    | {Action.IMPORT}
)
_AUDITS = frozenset(
    {Action.READ_OPERATIONS, Action.READ_COSTS, Action.READ_BINDINGS, Action.RESOLVE_BINDING, Action.READ_DELIVERIES}
    | {Action.JOBS, Action.STATS, Action.LIST_USERS}
)
# A role is for some kinds of actors; whoever has one that is not for its kind may do nothing.
_OF_ROLE: dict[tuple[ActorKind, Role], frozenset[Action]] = {
    (ActorKind.OPERATOR, Role.ADMIN): frozenset(Action),
    (ActorKind.OPERATOR, Role.AUDITOR): _AUDITS,
    (ActorKind.AGENT, Role.CURATOR): _OWNERS,
    (ActorKind.AGENT, Role.MEMBER): _OWNERS - _TAKES_AWAY,
    (ActorKind.AGENT, Role.READER): _OWNERS & _READS,
    (ActorKind.USER, Role.MEMBER): _OWNERS,
    (ActorKind.USER, Role.READER): _OWNERS & _READS,
}


@dataclass(frozen=True, slots=True)
class Grant:
    """Proof that an actor may do an action in a scope. No transaction opens without one.

    `partitions` lists what may be reached; None means every partition of the scope's space, and of all spaces if the
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
    """A grant, or `AccessDenied`. A refusal never says whether something exists.

    `beneath` is what is done on the way to it: then whether it may be done is for the action to say, and what it
    reaches for what is done.
    """
    if action not in _ALLOWED[actor.kind]:
        raise AccessDenied(f"{actor.kind}s may not {_in_words(action)}; ask an operator")
    if actor.role is not None and action not in _OF_ROLE.get((actor.kind, actor.role), frozenset()):
        above = Role.ADMIN if actor.kind is ActorKind.OPERATOR else ActorKind.OPERATOR
        problem = f"{actor.kind} {actor.id!r} is {actor.role}, and may not {_in_words(action)}"
        raise AccessDenied(f"{problem}; ask an {above}")
    action = beneath or action
    if scope.space == EVERYWHERE:
        _require_store(actor, action)
    reachable = readable(scope) if action in _READS else frozenset({scope.partition})
    if actor.kind in (ActorKind.OPERATOR, ActorKind.SYSTEM):
        _require_space(actor, scope)
        narrowed = scope.subject is not None or scope.agent is not None
        narrowed |= action in _OF_ONE_MEMORY or (action in _ADDRESSED and scope.conversation is not None)
        return Grant(actor, action, scope, reachable if narrowed else None)
    _require_space(actor, scope)
    _require_own(actor, scope)
    return Grant(actor, action, scope, reachable)


# What "may not" is followed by, where that is not what an action is called.
_WORDS = {
    Action.RECORD_UPSERT: "write records",
    Action.PROFILE: "read profiles",
    Action.HISTORY: "see the history",
    Action.JOBS: "see jobs",
    Action.STATS: "see figures",
    Action.FORGET_PREVIEW: "preview what would be forgotten",
}


def _in_words(action: Action) -> str:
    return _WORDS.get(action) or action.replace("_", " ")


def storewide() -> Grant:
    """What nobody asked for in particular: the work of the store itself, in every space."""
    return authorize(SYSTEM, Action.WORK, Scope(space=EVERYWHERE))


def only_reads(action: Action) -> bool:
    return action in _READS


def readable(scope: Scope) -> frozenset[Partition]:
    """Which partitions a read in a scope is about: what is shared, and the subject's and the agent's if named."""
    found = {Partition(scope.space, PartitionKind.SHARED)}
    if scope.subject is not None:
        found.add(Partition(scope.space, PartitionKind.SUBJECT, scope.subject))
    if scope.agent is not None:
        found.add(Partition(scope.space, PartitionKind.AGENT, scope.agent))
    return frozenset(found)


def _require_store(actor: Actor, action: Action) -> None:
    if actor.kind is ActorKind.SYSTEM:
        return
    if actor.kind is not ActorKind.OPERATOR or actor.space is not None or action not in _STOREWIDE:
        raise AccessDenied(f"{actor.kind} {actor.id!r} may not {_in_words(action)} over all spaces; name one space")


def within_walls(actor: Actor, scope: Scope) -> bool:
    """Whether a scope is of the space that the actor is walled in by, if it is."""
    overseer = actor.kind in (ActorKind.OPERATOR, ActorKind.SYSTEM)
    return (actor.space or (None if overseer else DEFAULT_SPACE)) in (None, scope.space)


def _require_space(actor: Actor, scope: Scope) -> None:
    if not within_walls(actor, scope):
        raise AccessDenied(f"{actor.kind} {actor.id!r} has no access to this space; use its own")


def _require_own(actor: Actor, scope: Scope) -> None:
    if actor.kind is ActorKind.AGENT:
        own = scope.agent == actor.id and (scope.subject is None or scope.subject in actor.subjects)
    else:
        own = scope.subject == actor.id and scope.agent is None
    if not own:
        raise AccessDenied(f"{actor.kind} {actor.id!r} may only act in its own scope; give its own subject or agent")
