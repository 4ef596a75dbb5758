"""The runtime's builder. It is immutable: each step returns a new builder, so one can be reused."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypeVar

from holdfast.domain.access import LOCAL_OPERATOR, Actor
from holdfast.domain.capabilities import Circumstances, Privacy
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.profiles import DEFAULT_PROFILE, Backend
from holdfast.domain.scope import DEFAULT_SPACE
from holdfast.domain.secret import Secret
from holdfast.ports import Clock, Embedder, IdGenerator
from holdfast.settings import Settings

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RuntimeModel:
    """A model with an OpenAI-compatible API. Missing values come from the settings."""

    name: str
    url: str | None = None
    key: Secret | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a runtime. They are validated when it is opened."""

    profile: str = DEFAULT_PROFILE
    location: str | os.PathLike[str] = "memory.db"
    backend: Backend | str | None = None
    identity: MemoryIdentity = field(default_factory=MemoryIdentity)
    actor: Actor = LOCAL_OPERATOR
    privacy: Privacy = field(default_factory=Privacy)
    switched_off: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    model: RuntimeModel | None = None
    embedder: Embedder | str | None = None
    settings: Settings | None = None
    clock: Clock | None = None
    new_ids: IdGenerator | None = None
    work: bool = True

    def circumstances(self, *, model: bool) -> Circumstances:
        return Circumstances(model, self.switched_off, self.forbidden, self.privacy)


class MemoryRuntimeBuilder(Generic[R]):
    """Each method returns a new builder; `open` opens the runtime."""

    def __init__(self, opening: Callable[[Plan], R], plan: Plan | None = None) -> None:
        self._opening = opening
        self._plan = plan or Plan()

    def _with(self, plan: Plan) -> Self:
        return type(self)(self._opening, plan)

    def profile(self, name: str) -> Self:
        """Set the profile: its budgets and disabled capabilities; see `holdfast platform profiles`."""
        return self._with(replace(self._plan, profile=name))

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

    def model(self, name: str, *, url: str | None = None, key: str | None = None) -> Self:
        """Set the model that maintains memory: any server with OpenAI-compatible chat completions."""
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

    def embedder(self, embedder: Embedder | str) -> Self:
        """Set the embedder, as in `holdfast.open`: static, onnx:<directory>, openai:<model>, or one of your own."""
        return self._with(replace(self._plan, embedder=embedder))

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
