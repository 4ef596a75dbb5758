"""Bindings of a space to memory providers, their targets, and the choice of a binding for a call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from holdfast.domain.arguments import Rule
from holdfast.domain.contract import HookKind
from holdfast.domain.ids import BindingId
from holdfast.domain.presentable import Presentable
from holdfast.errors import BindingDisabled, BindingNotFound, InvalidInput

DEFAULT_BINDING = "default"
LOCAL = "local"
MAX_KEY_CHARS = 64
KEY_PATTERN = "^[a-z0-9][a-z0-9_-]*$"
_KEY = re.compile(KEY_PATTERN, re.ASCII)

# Broad silent capture is dangerous: comments and documents are captured only if switched on.
HOOKS_AT_FIRST: Mapping[HookKind, bool] = {
    HookKind.PRE_RUN_HYDRATE: True,
    HookKind.POST_RUN_CAPTURE: True,
    HookKind.ISSUE_COMMENT_CAPTURE: False,
    HookKind.ISSUE_DOCUMENT_CAPTURE: False,
    HookKind.MANUAL_CAPTURE: True,
}


@dataclass(frozen=True, slots=True)
class Binding(Presentable):
    """A named choice of provider and configuration within a space. `config` holds references to secrets only.

    `revision` grows with every change. Without `created_at` it is the implicit first binding, which is not stored.
    """

    id: BindingId
    space: str
    key: str
    provider: str
    config: Mapping[str, Any] = field(default_factory=dict)
    hooks: Mapping[HookKind, bool] = field(default_factory=lambda: dict(HOOKS_AT_FIRST))
    enabled: bool = True
    revision: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None

    def delivers(self, hook: HookKind) -> bool:
        return self.hooks.get(hook, HOOKS_AT_FIRST[hook])


class TargetKind(StrEnum):
    COMPANY = "company"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Target(Presentable):
    """The target of a binding: the whole space (`target_id` is the space), or one agent of it."""

    kind: TargetKind
    target_id: str
    binding_key: str


class ResolutionRule(StrEnum):
    """The rule that chose a binding."""

    BINDING_KEY = "binding_key"
    AGENT_OVERRIDE = "agent_override"
    COMPANY_DEFAULT = "company_default"
    UNCONFIGURED = "unconfigured"


@dataclass(frozen=True, slots=True)
class Resolution:
    """A chosen binding. `checked` are the rules tried in order: `binding_key`, `agent_override`, `company_default`."""

    binding: Binding | None
    source: ResolutionRule
    checked: tuple[ResolutionRule, ...]

    def usable(self) -> Binding:
        """Return the binding, or raise if there is none or it is disabled."""
        if self.binding is None:
            rules = ", ".join(self.checked)
            raise BindingNotFound(
                f"no memory is bound here (checked: {rules}); create a binding and make it the space's default"
            )
        if not self.binding.enabled:
            raise BindingDisabled(f"the binding `{self.binding.key}` is disabled; enable it, or name another")
        return self.binding


def first_binding(space: str) -> Binding:
    """Return the implicit binding of a new space, so that no space is unconfigured by accident."""
    return Binding(BindingId("bnd_default"), space, DEFAULT_BINDING, LOCAL)


def checked_key(value: object, field_name: str = "key") -> str:
    if not isinstance(value, str):
        raise InvalidInput(field_name, f"expected text, got {type(value).__name__}")
    if len(value) > MAX_KEY_CHARS:
        raise InvalidInput(field_name, f"has {len(value)} characters; at most {MAX_KEY_CHARS} are allowed")
    if not _KEY.fullmatch(value):
        raise InvalidInput(
            field_name, f"{value!r:.80} must be lowercase letters, digits, - and _, and begin with a letter or digit"
        )
    return value


Key = Annotated[str, Rule(checked_key, "KEY", 1, MAX_KEY_CHARS, KEY_PATTERN)]
BindingKey = Annotated[Key, "Use this binding; without it, the agent's, else the space's."]


def resolve(
    bindings: Iterable[Binding], targets: Iterable[Target], space: str, key: str | None, agent: str | None
) -> Resolution:
    """Choose the binding of that key; else the agent's; else the space's. A disabled one ends the search, too.

    `bindings` and `targets` are those of the space, with `first_binding` and its target if it never had any.
    """
    by_key = {binding.key: binding for binding in bindings if binding.space == space}
    if key is not None:
        found = by_key.get(key)
        if found is None:
            raise BindingNotFound(f"there is no binding {key!r:.80} in this space; list its bindings")
        return Resolution(found, ResolutionRule.BINDING_KEY, (ResolutionRule.BINDING_KEY,))
    bound = {(target.kind, target.target_id): target.binding_key for target in targets}
    checked: list[ResolutionRule] = []
    overrides = [] if agent is None else [(ResolutionRule.AGENT_OVERRIDE, (TargetKind.AGENT, agent))]
    for source, target in [*overrides, (ResolutionRule.COMPANY_DEFAULT, (TargetKind.COMPANY, space))]:
        checked.append(source)
        if target in bound and bound[target] in by_key:
            return Resolution(by_key[bound[target]], source, tuple(checked))
    return Resolution(None, ResolutionRule.UNCONFIGURED, tuple(checked))
