"""Bindings: which memory serves which target, who may change that, and the record of each change."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from desk import ACME, AGENT, BOT, NOTE, OPERATOR, OTHER, WHOLE, Desk, rows_of, text

from holdfast.control.bindings import (
    ClearTarget,
    CreateBinding,
    DeleteBinding,
    GetBinding,
    ListBindings,
    ListProviders,
    ListTargets,
    ResolveBinding,
    SetTarget,
    UpdateBinding,
)
from holdfast.control.memory import Capture, Query
from holdfast.domain.access import LOCAL_OPERATOR, Actor, ActorKind, ActorRole, storewide_grant
from holdfast.domain.bindings import ResolutionRule, Target, TargetKind
from holdfast.domain.contract import HookKind
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import EventId
from holdfast.domain.operations import Outcome
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.errors import (
    AccessDenied,
    BindingDisabled,
    BindingExists,
    BindingNotFound,
    HoldfastError,
    IdempotencyConflict,
    InvalidConfiguration,
    InvalidInput,
    InvalidScope,
    ProviderMisconfigured,
    RevisionConflict,
    UnknownProvider,
)
from holdfast.testing.full_repr import full_repr


def keys(desk: Desk, runner: asyncio.Runner) -> list[tuple[str, str, bool]]:
    found = runner.run(desk.do(ListBindings(WHOLE)))
    return [(each.key, each.provider, each.enabled) for each in found.items]


def test_a_company_that_never_had_a_binding_has_one(desk: Desk, runner: asyncio.Runner) -> None:
    assert keys(desk, runner) == [("default", "local", True)]
    assert runner.run(desk.do(ListTargets(WHOLE))) == (Target(TargetKind.COMPANY, ACME, "default"),)
    found = runner.run(desk.do(ResolveBinding(BOT), AGENT))
    assert (found.binding_key, found.provider, found.enabled, found.source) == (
        "default", "local", True, ResolutionRule.COMPANY_DEFAULT,
    )  # fmt: skip
    assert found.checked == (ResolutionRule.AGENT_OVERRIDE, ResolutionRule.COMPANY_DEFAULT)
    assert found.capabilities is not None
    assert found.capabilities.correction


def test_a_key_goes_before_the_agents_binding_and_that_before_the_companys(desk: Desk, runner: asyncio.Runner) -> None:
    for key in ("first", "second", "third"):
        runner.run(desk.do(CreateBinding(WHOLE, key, "hostile", {"colour": key})))
    runner.run(desk.do(SetTarget(WHOLE, TargetKind.COMPANY, ACME, "first")))
    runner.run(desk.do(SetTarget(WHOLE, TargetKind.AGENT, "bot", "second")))

    def chosen(scope: Scope, key: str | None = None) -> tuple[str | None, ResolutionRule]:
        found = runner.run(desk.do(ResolveBinding(scope, key)))
        return found.binding_key, found.source

    assert chosen(BOT, "third") == ("third", ResolutionRule.BINDING_KEY)
    assert chosen(BOT) == ("second", ResolutionRule.AGENT_OVERRIDE)
    assert chosen(Scope(space=ACME, agent="other")) == ("first", ResolutionRule.COMPANY_DEFAULT)
    assert chosen(WHOLE) == ("first", ResolutionRule.COMPANY_DEFAULT)
    runner.run(desk.do(ClearTarget(WHOLE, TargetKind.AGENT, "bot")))
    assert chosen(BOT) == ("first", ResolutionRule.COMPANY_DEFAULT)
    assert chosen(Scope(space=OTHER, agent="bot")) == ("default", ResolutionRule.COMPANY_DEFAULT)


def test_without_any_binding_a_call_says_what_was_looked_at(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.do(ClearTarget(WHOLE, TargetKind.COMPANY, ACME)))
    found = runner.run(desk.do(ResolveBinding(BOT), AGENT))
    assert (found.binding_key, found.source) == (None, ResolutionRule.UNCONFIGURED)
    with rows_of(desk, runner.run) as rows, pytest.raises(BindingNotFound, match="agent_override, company_default"):
        runner.run(desk.do(Query(BOT, "cat"), AGENT))
    assert [(row.outcome, row.error_code) for row in rows] == [(Outcome.REFUSED, "binding_not_found")]
    with pytest.raises(BindingNotFound, match="'nowhere'") as refused:
        runner.run(desk.do(Query(BOT, "cat", binding_key="nowhere"), AGENT))
    assert refused.value.field == "binding_key"


def test_a_disabled_binding_is_no_reason_to_look_on(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.do(CreateBinding(WHOLE, "mine", "local")))
    runner.run(desk.do(SetTarget(WHOLE, TargetKind.AGENT, "bot", "mine")))
    runner.run(desk.do(UpdateBinding(WHOLE, "mine", enabled=False), OPERATOR))
    with rows_of(desk, runner.run) as rows, pytest.raises(BindingDisabled, match="`mine`"):
        runner.run(desk.do(Capture(BOT, NOTE, text("The cat sat.")), AGENT))
    (row,) = rows
    assert (row.outcome, row.error_code) == (Outcome.REFUSED, "binding_disabled")
    assert row.attribution is not None
    assert row.attribution.binding == "mine"
    assert runner.run(desk.do(ResolveBinding(BOT), AGENT)).enabled is False
    runner.run(desk.do(UpdateBinding(WHOLE, "mine", enabled=True), OPERATOR))
    runner.run(desk.do(Capture(BOT, NOTE, text("The cat sat.")), AGENT))


def test_what_is_given_is_what_is_kept_with_the_providers_defaults(desk: Desk, runner: asyncio.Runner) -> None:
    made = runner.run(
        desk.do(
            CreateBinding(WHOLE, "there", "hostile", {"timeout_seconds": 3}, {HookKind.ISSUE_COMMENT_CAPTURE: True})
        )
    )
    found = runner.run(desk.do(GetBinding(WHOLE, "there")))
    assert found == made
    assert dict(found.config) == {"colour": "grey", "timeout_seconds": 3}
    assert found.delivers(HookKind.ISSUE_COMMENT_CAPTURE)
    assert found.delivers(HookKind.POST_RUN_CAPTURE)
    assert not found.delivers(HookKind.ISSUE_DOCUMENT_CAPTURE)
    assert (found.revision, found.space, found.enabled) == (1, ACME, True)


def test_a_change_is_of_the_revision_that_was_looked_at(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.do(CreateBinding(WHOLE, "there", "hostile")))
    changed = runner.run(desk.do(UpdateBinding(WHOLE, "there", {"colour": "red"}, expected_revision=1)))
    assert (changed.revision, dict(changed.config)) == (2, {"colour": "red"})
    with pytest.raises(RevisionConflict, match="revision 2, not 1"):
        runner.run(desk.do(UpdateBinding(WHOLE, "there", {"colour": "blue"}, expected_revision=1)))
    same = runner.run(desk.do(UpdateBinding(WHOLE, "there", {"colour": "red"})))
    assert same.revision == 2
    assert len(runner.run(desk.activity())) == 2


def test_the_first_binding_is_written_down_by_its_first_change(desk: Desk, runner: asyncio.Runner) -> None:
    changed = runner.run(desk.do(UpdateBinding(WHOLE, "default", enabled=False)))
    assert (changed.revision, changed.enabled) == (2, False)
    assert keys(desk, runner) == [("default", "local", False)]
    assert [each.kind for each in runner.run(desk.activity())] == ["memory.binding_disabled"]


def test_what_is_deleted_serves_nobody_and_its_key_is_free(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    runner.run(desk.do(DeleteBinding(WHOLE, "elsewhere"), OPERATOR))
    assert keys(desk, runner) == [("default", "local", True)]
    assert runner.run(desk.do(ListTargets(WHOLE))) == ()
    with pytest.raises(BindingNotFound):
        runner.run(desk.do(GetBinding(WHOLE, "elsewhere")))
    runner.run(desk.do(DeleteBinding(WHOLE, "default")))
    assert keys(desk, runner) == []  # the default binding is not created again
    runner.run(desk.do(CreateBinding(WHOLE, "elsewhere", "local")))
    assert keys(desk, runner) == [("elsewhere", "local", True)]


def test_every_change_is_an_event_that_names_who_and_what_and_no_value(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.do(CreateBinding(WHOLE, "there", "hostile", {"colour": "hunter2"})))
    changes = [
        UpdateBinding(WHOLE, "there", hooks={HookKind.MANUAL_CAPTURE: False}, enabled=False),
        UpdateBinding(WHOLE, "there", enabled=True),
        SetTarget(WHOLE, TargetKind.COMPANY, ACME, "there"),
        SetTarget(WHOLE, TargetKind.AGENT, "bot", "there"),
        ClearTarget(WHOLE, TargetKind.AGENT, "bot"),
        ClearTarget(WHOLE, TargetKind.COMPANY, ACME),
        DeleteBinding(WHOLE, "there"),
    ]
    for change in changes:
        runner.run(desk.do(change, OPERATOR))
    found = list(runner.run(desk.activity()))[::-1]
    assert [each.kind.removeprefix("memory.") for each in found] == [
        "binding_created", "binding_updated", "binding_disabled", "binding_enabled", "default_set",
        "agent_override_set", "agent_override_cleared", "default_cleared", "binding_deleted",
    ]  # fmt: skip
    assert {each.key for each in found} == {"there"}
    assert [each.details["actor"] for each in found] == ["operator:local"] + ["operator:boss"] * 8
    assert found[1].details["changed"] == "hooks.manual_capture"
    assert found[5].details["target"] == "bot"
    assert "hunter2" not in full_repr(found)
    assert "hunter2" not in full_repr(runner.run(desk.rows()))


def test_what_was_changed_is_kept_however_few_other_events_are(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.do(CreateBinding(WHOLE, "mine", "local")))

    def prune(transaction: Any) -> int:
        written = Event(
            EventId(desk.engine._core.ids.new("evt")), EventKind.WRITE, WHOLE, desk.engine._core.clock.now()
        )
        transaction.events.append(written)
        return int(transaction.events.prune(ACME, 0))

    assert runner.run(desk.engine._core.store.write(storewide_grant(), prune)) == 1
    assert [each.kind for each in runner.run(desk.activity())] == ["memory.binding_created"]


def test_what_changes_nothing_leaves_no_event(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.do(UpdateBinding(WHOLE, "default", enabled=True)))
    runner.run(desk.do(SetTarget(WHOLE, TargetKind.COMPANY, ACME, "default")))
    assert runner.run(desk.do(ClearTarget(WHOLE, TargetKind.AGENT, "bot"))) is False
    for refused in (DeleteBinding(WHOLE, "nowhere"), UpdateBinding(WHOLE, "nowhere", enabled=True)):
        with pytest.raises(BindingNotFound):
            runner.run(desk.do(refused))
    assert runner.run(desk.activity()) == ()


BAD: dict[str, tuple[Any, type[HoldfastError], str]] = {
    "a provider that nobody knows": (lambda: CreateBinding(WHOLE, "x", "nobody"), UnknownProvider, "provider"),
    "a provider that is no text": (lambda: CreateBinding(WHOLE, "x", 7), InvalidInput, "provider"),  # type: ignore[arg-type]
    "a configuration of another provider": (
        lambda: CreateBinding(WHOLE, "x", "hostile", {"url": "http://x"}), InvalidConfiguration, "config.url",
    ),
    "a time without bounds": (
        lambda: CreateBinding(WHOLE, "x", "hostile", {"timeout_seconds": 3_600}),
        InvalidConfiguration, "config.timeout_seconds",
    ),
    "a time that is none": (
        lambda: CreateBinding(WHOLE, "x", "hostile", {"timeout_seconds": "soon"}),
        InvalidConfiguration, "config.timeout_seconds",
    ),
    "a configuration that is none": (lambda: CreateBinding(WHOLE, "x", "hostile", [1]), InvalidInput, "config"),  # type: ignore[arg-type]
    "a key in capitals": (lambda: CreateBinding(WHOLE, "Mine", "local"), InvalidInput, "key"),
    "a key that is too long": (lambda: CreateBinding(WHOLE, "k" * 65, "local"), InvalidInput, "key"),
    "a hook that there is not": (
        lambda: CreateBinding(WHOLE, "x", "local", {}, {"post_run": True}), InvalidInput, "hooks",  # type: ignore[dict-item]
    ),
    "a hook that is half on": (
        lambda: CreateBinding(WHOLE, "x", "local", {}, {HookKind.MANUAL_CAPTURE: "yes"}),  # type: ignore[dict-item]
        InvalidInput, "hooks.manual_capture",
    ),
    "another company's id": (lambda: SetTarget(WHOLE, TargetKind.COMPANY, OTHER, "default"), InvalidScope, "target_id"),
    "a target of no kind": (lambda: SetTarget(WHOLE, "project", "p1", "default"), InvalidInput, "kind"),  # type: ignore[arg-type]
    "a part of a company": (lambda: CreateBinding(BOT, "x", "local"), InvalidScope, "agent"),
    "all companies": (lambda: CreateBinding(Scope(space=EVERYWHERE), "x", "local"), InvalidScope, "space"),
    "nothing to change": (lambda: UpdateBinding(WHOLE, "default"), InvalidInput, "changes"),
}  # fmt: skip


@pytest.mark.parametrize("named", BAD)
def test_what_is_wrong_is_named_and_leaves_a_row_and_no_event(desk: Desk, runner: asyncio.Runner, named: str) -> None:
    make, kind, field = BAD[named]
    with rows_of(desk, runner.run) as rows, pytest.raises(kind) as raised:
        runner.run(desk.make(make, CreateBinding))
    assert isinstance(raised.value, InvalidInput)
    assert raised.value.field == field
    assert [(row.outcome, row.error_code) for row in rows] == [(Outcome.REFUSED, raised.value.code)]
    assert runner.run(desk.activity()) == ()
    assert keys(desk, runner) == [("default", "local", True)]


def test_a_key_is_taken_once_per_company(desk: Desk, runner: asyncio.Runner) -> None:
    with pytest.raises(BindingExists, match="'default'"):
        runner.run(desk.do(CreateBinding(WHOLE, "default", "local")))
    runner.run(desk.do(CreateBinding(WHOLE, "mine", "local")))
    with pytest.raises(BindingExists, match="'mine'") as refused:
        runner.run(desk.do(CreateBinding(WHOLE, "mine", "hostile")))
    assert refused.value.field == "key"
    runner.run(desk.do(CreateBinding(Scope(space=OTHER), "mine", "hostile")))


def test_made_again_with_its_key_a_binding_is_made_once(desk: Desk, runner: asyncio.Runner) -> None:
    first, again = (runner.run(desk.do(CreateBinding(WHOLE, "mine", "local", idempotency_key="k"))) for _ in range(2))
    assert first == again
    with pytest.raises(IdempotencyConflict):
        runner.run(desk.do(CreateBinding(WHOLE, "other", "local", idempotency_key="k")))
    assert len(runner.run(desk.activity())) == 1


def test_only_an_operator_without_walls_configures_what_reaches_outside(desk: Desk, runner: asyncio.Runner) -> None:
    with rows_of(desk, runner.run) as rows, pytest.raises(AccessDenied, match="external provider"):
        runner.run(desk.do(CreateBinding(WHOLE, "there", "hostile"), OPERATOR))
    assert [(row.outcome, row.error_code) for row in rows] == [(Outcome.REFUSED, "access_denied")]
    runner.run(desk.do(CreateBinding(WHOLE, "there", "hostile"), LOCAL_OPERATOR))
    with pytest.raises(AccessDenied, match="external provider"):
        runner.run(desk.do(UpdateBinding(WHOLE, "there", {"colour": "red"}), OPERATOR))
    # A company's own operator may do the rest.
    runner.run(desk.do(CreateBinding(WHOLE, "here", "local"), OPERATOR))
    runner.run(desk.do(UpdateBinding(WHOLE, "there", enabled=False), OPERATOR))
    runner.run(desk.do(SetTarget(WHOLE, TargetKind.AGENT, "bot", "there"), OPERATOR))
    runner.run(desk.do(DeleteBinding(WHOLE, "there"), OPERATOR))


CHANGES = [
    CreateBinding(WHOLE, "x", "local"),
    UpdateBinding(WHOLE, "default", enabled=False),
    DeleteBinding(WHOLE, "default"),
    SetTarget(WHOLE, TargetKind.AGENT, "bot", "default"),
    ClearTarget(WHOLE, TargetKind.COMPANY, ACME),
]


@pytest.mark.parametrize(
    "actor",
    [
        AGENT,
        Actor(ActorKind.USER, "ana", ACME),
        Actor(ActorKind.OPERATOR, "eye", ACME, role=ActorRole.AUDITOR),
        Actor(ActorKind.OPERATOR, "rival", OTHER),
    ],
    ids=str,
)
def test_nobody_else_changes_bindings(desk: Desk, runner: asyncio.Runner, actor: Actor) -> None:
    for change in CHANGES:
        with rows_of(desk, runner.run) as rows, pytest.raises(AccessDenied):
            runner.run(desk.do(change, actor))
        assert [(row.outcome, row.action) for row in rows] == [(Outcome.REFUSED, "manage_bindings")]
    assert keys(desk, runner) == [("default", "local", True)]


def test_an_agent_sees_what_serves_it_and_not_how_it_is_configured(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside(colour="hunter2"))
    assert "hunter2" not in full_repr(runner.run(desk.do(ResolveBinding(BOT), AGENT)))
    for look in (ListBindings(WHOLE), GetBinding(WHOLE, "elsewhere"), ListTargets(WHOLE), ListProviders(WHOLE)):
        with pytest.raises(AccessDenied):
            runner.run(desk.do(look, AGENT))


def test_what_is_installed_is_listed_with_its_schema(desk: Desk, runner: asyncio.Runner) -> None:
    found = {each.key: each for each in runner.run(desk.do(ListProviders(WHOLE)))}
    assert set(found) == {"hostile", "local"}
    assert (found["hostile"].outside, found["local"].outside) == (True, False)
    assert "colour" in found["hostile"].schema["properties"]


def test_a_provider_that_is_not_installed_any_more_is_our_trouble_and_not_the_callers(
    desk: Desk, runner: asyncio.Runner
) -> None:
    runner.run(desk.bind_outside())
    desk.hostile.key = "gone"  # type: ignore[misc]
    with rows_of(desk, runner.run) as rows, pytest.raises(ProviderMisconfigured, match="not installed"):
        runner.run(desk.do(Query(BOT, "cat"), AGENT))
    assert [(row.outcome, row.error_code) for row in rows] == [(Outcome.FAILED, "provider_misconfigured")]
    assert runner.run(desk.do(ResolveBinding(BOT), AGENT)).capabilities is None
