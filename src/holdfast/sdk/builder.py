"""The runtime's builder. It is immutable: each step returns a new builder, so one can be reused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypeVar

from holdfast.domain.access import LOCAL_OPERATOR, Actor
from holdfast.domain.call_errors import ExplainAttributes, explain_arguments, explain_methods
from holdfast.domain.capabilities import Circumstances, Privacy
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.profiles import DEFAULT_PROFILE, Backend
from holdfast.domain.scope import DEFAULT_SPACE
from holdfast.domain.secret import Secret
from holdfast.domain.tool_registries import AgentToolRegistry
from holdfast.errors import InvalidInput
from holdfast.ports import Clock, EmbedderLike, IdGenerator, PromptModel
from holdfast.settings import Settings

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RuntimeModel:
    """A model: the name of one with an OpenAI-compatible API, or an object. Missing values come from the settings."""

    name: str | PromptModel
    url: str | None = None
    key: Secret | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a runtime. They are validated when it is opened."""

    profile: str = DEFAULT_PROFILE
    budget: Mapping[str, int] = field(default_factory=dict)
    location: str | os.PathLike[str] = "memory.db"
    backend: Backend | str | None = None
    identity: MemoryIdentity = field(default_factory=MemoryIdentity)
    actor: Actor = LOCAL_OPERATOR
    privacy: Privacy = field(default_factory=Privacy)
    switched_off: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    model: RuntimeModel | None = None
    embedder: EmbedderLike | None = None
    settings: Settings | None = None
    clock: Clock | None = None
    new_ids: IdGenerator | None = None
    work: bool = True
    # None for those of the settings.
    agent_skill_dirs: tuple[str, ...] | None = None
    tool_registries: tuple[AgentToolRegistry, ...] = ()

    def circumstances(self, *, model: bool) -> Circumstances:
        return Circumstances(model, self.switched_off, self.forbidden, self.privacy)


@explain_methods
class MemoryRuntimeBuilder(ExplainAttributes, Generic[R]):
    """Each method returns a new builder; `open` opens the runtime."""

    def __init__(self, opening: Callable[[Plan], R], plan: Plan | None = None) -> None:
        self._opening = opening
        self._plan = plan or Plan()

    def _with(self, plan: Plan) -> Self:
        return type(self)(self._opening, plan)

    def profile(self, name: str) -> Self:
        """Set the profile: its budgets and disabled capabilities; see `holdfast platform profiles`."""
        return self._with(replace(self._plan, profile=name))

    def budget(self, **budgets: int) -> Self:
        """Replace budgets of the profile by name: `records`, `blob_bytes` and more; `holdfast platform profiles`."""
        return self._with(replace(self._plan, budget={**self._plan.budget, **budgets}))

    def store(self, location: str | os.PathLike[str], *, backend: Backend | str | None = None) -> Self:
        """Set the store: a path, ":memory:" or a "postgresql://" URL. `backend` overrides a path's default, SQLite."""
        return self._with(replace(self._plan, location=location, backend=backend))

    def identity(
        self,
        *,
        space: str = DEFAULT_SPACE,
        subject_id: str | None = None,
        agent_id: str | None = None,
        app: str | None = None,
        project: str | None = None,
        namespace: str | None = None,
    ) -> Self:
        """Set the owner of the memory. Records added through a gateway have app and project "default" if unnamed."""
        owner = MemoryIdentity(space, subject_id, agent_id, app, project, namespace)
        return self._with(replace(self._plan, identity=owner))

    def actor(self, actor: Actor) -> Self:
        """Set the calling actor; by default the operator of this machine."""
        return self._with(replace(self._plan, actor=actor))

    def model(self, name: str | PromptModel, *, url: str | None = None, key: str | None = None) -> Self:
        """Set the model that maintains memory: any server with OpenAI-compatible chat completions, or an object."""
        if not isinstance(name, str):
            if not callable(getattr(name, "answer", None)):
                raise InvalidInput("model", f"pass a name, or an object with `answer`, not {type(name).__name__}")
            if url is not None or key is not None:
                raise InvalidInput("model", "an object has no url and no key; pass them with a name")
        secret = None if key is None else Secret(key, "key")
        return self._with(replace(self._plan, model=RuntimeModel(name, url, secret)))

    def privacy(
        self, *, prompt_projection: bool = True, private_plane_projection: bool = False, export_import: bool = True
    ) -> Self:
        """Set what may leave memory. By default the standard policy applies."""
        policy = Privacy(prompt_projection, private_plane_projection, export_import)
        return self._with(replace(self._plan, privacy=policy))

    def switch_off(self, *capabilities: str) -> Self:
        """Disable capabilities by name."""
        return self._with(replace(self._plan, switched_off=self._plan.switched_off | frozenset(capabilities)))

    def forbid(self, *capabilities: str) -> Self:
        """Forbid capabilities by name, to every caller of this runtime."""
        return self._with(replace(self._plan, forbidden=self._plan.forbidden | frozenset(capabilities)))

    def embedder(self, embedder: EmbedderLike) -> Self:
        """Set the embedder, as in `holdfast.open`: static, onnx:<directory>, openai:<model>, or one of your own."""
        return self._with(replace(self._plan, embedder=embedder))

    def agent_skill_dirs(self, folders: Iterable[str | os.PathLike[str]]) -> Self:
        """Mount these folders of Agent Skills, read-only, instead of those of the settings; an empty list for none."""
        if isinstance(folders, str | bytes | os.PathLike) or not isinstance(folders, Iterable):
            raise InvalidInput("agent_skill_dirs", f"pass a list of folders, not {type(folders).__name__}")
        checked = tuple(_checked_folder(folder, "agent_skill_dirs") for folder in folders)
        return self._with(replace(self._plan, agent_skill_dirs=checked))

    def add_agent_skill_dir(self, folder: str | os.PathLike[str]) -> Self:
        """Mount one more folder of Agent Skills, read-only."""
        mounted = (*(self._plan.agent_skill_dirs or ()), _checked_folder(folder, "add_agent_skill_dir"))
        return self._with(replace(self._plan, agent_skill_dirs=mounted))

    def agent_tool_registry(self, registry: AgentToolRegistry) -> Self:
        """Register a snapshot of the host's tools when the runtime is opened; call it again for another registry."""
        return self._with(replace(self._plan, tool_registries=(*self._plan.tool_registries, registry)))

    def settings(self, settings: Settings) -> Self:
        """Use these settings instead of the environment."""
        return self._with(replace(self._plan, settings=settings))

    def clock(self, clock: Clock, new_ids: IdGenerator | None = None) -> Self:
        """Set the clock and the id generator, for tests."""
        return self._with(replace(self._plan, clock=clock, new_ids=new_ids))

    def without_worker(self) -> Self:
        """Leave background work to other processes, and to `recover`."""
        return self._with(replace(self._plan, work=False))

    def open(self) -> R:
        """Open or create the store, check its manifest, and start."""
        return self._opening(self._plan)


class Openable(Generic[R]):
    """The short way to open a runtime: the steps of the builder that nearly every host takes, in one call."""

    @classmethod
    def builder(cls) -> MemoryRuntimeBuilder[R]:
        raise NotImplementedError

    @classmethod
    @explain_arguments
    def open(
        cls,
        location: str | os.PathLike[str] = "memory.db",
        *,
        subject: str | None = None,
        agent: str | None = None,
        space: str = DEFAULT_SPACE,
        profile: str = DEFAULT_PROFILE,
    ) -> R:
        """Open or create the store at `location`. `subject` is the person it is about, or `agent` the agent.

        `builder` has the other options: a model, budgets, privacy and more.
        """
        steps = cls.builder().profile(profile).store(location)
        return steps.identity(space=space, subject_id=subject, agent_id=agent).open()


def _checked_folder(folder: object, name: str) -> str:
    path = os.fspath(folder) if isinstance(folder, str | os.PathLike) else None
    if not isinstance(path, str):
        raise InvalidInput(name, f"pass the path of a folder, as a text or a Path, not {type(folder).__name__}")
    if not path or "\0" in path:
        raise InvalidInput(name, f"pass the path of a folder, not {path!r:.80}")
    return path
