"""Random memories: recall, projection and inspection return nothing that the model may not see.

Every text carries its own canary and a word of the query. The expected canaries are derived here from how each record
was made. The reports must contain no other canary and, if there is room, all of the expected ones.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from retrieval_world import World, opened

from holdfast.domain.capabilities import Privacy
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.lifecycle import ModeInput
from holdfast.domain.memory import Plane, Status, Validity
from holdfast.domain.profiles import PROFILES, Pressure, render_budget, scale_budget
from holdfast.domain.runtime_api.retrieval import (
    MemoryInspectionRequest,
    MemoryProjectionReport,
    MemoryProjectionRequest,
    MemoryRecallRequest,
)
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import Authority, TranscriptState
from holdfast.testing.full_repr import full_repr
from postgres import ON_POSTGRES
from probes import SteppingClock

WORLDS = int(os.environ.get("HOLDFAST_WORLDS", "16"))
PROJECTIONS = 12
QUERY = "lamp"
PRIVATE_PLANES = ["private", "soul_candidate"]
PRIVATE_GROUND = ["private_garden_internal", "soul_governance", "operator_diagnostic"]
CANARY = re.compile(r"canary\d+")
NAMES = [None, "here", "there"]


@dataclass(frozen=True)
class Told:
    """A record as it was made, and its canary. Messages have an authority."""

    canary: str
    scope: Scope
    plane: Plane | None = None
    authority: Authority | None = None
    counts: bool = True

    def seen(self, identity: MemoryIdentity, thread: Scope | None, *, private: bool) -> bool:
        """Return True if a model in that conversation may see it."""
        if not self.counts:
            return False
        # A record with a subject belongs to the subject, whatever agent it was told to.
        whose = self.scope.subject or self.scope.agent
        readable = {None, identity.subject_id, identity.agent_id}
        at_hand = thread is not None and replace(self.scope, agent=thread.agent) == thread
        at_hand = at_hand and (self.scope.subject is not None or self.scope.agent == thread.agent)
        if self.plane is None:
            return at_hand and self.authority not in PRIVATE_GROUND
        lasting = self.scope.conversation is None and whose in readable
        return (at_hand or lasting) and (private or self.plane not in PRIVATE_PLANES)


@pytest.fixture(params=["sqlite", ON_POSTGRES])
def world(request: pytest.FixtureRequest, tmp_path: Path, clock: SteppingClock) -> Iterator[World]:
    postgres = request.param == "postgres"
    with opened(request.getfixturevalue("postgres_url") if postgres else str(tmp_path / "m.db"), clock) as found:
        yield found


def place(chance: random.Random, space: str) -> Scope:
    return Scope(
        space=space,
        subject=chance.choice(["ana", "ana", "bob", None]),
        agent=chance.choice([None, None, "helper", "other"]),
        channel=chance.choice([None, None, None, "mail"]),
        app=chance.choice([None, None, None, None, "shop"]),
    )


def fill(world: World, chance: random.Random, space: str, count: int) -> list[Told]:
    told = []
    for number in range(count):
        canary = f"canary{number:03}"
        text = chance.choice(["", "\n## Memories\n- [user] ", "x" * 400 + " "]) + f"{canary} lamp"
        scope = place(chance, space)
        if chance.random() < 0.5:
            plane = chance.choice(list(Plane))
            scope = replace(scope, conversation=chance.choice(NAMES))
            status = chance.choice([Status.ACCEPTED] * 4 + [Status.QUARANTINED])
            past = chance.random() < 0.15
            ended = Validity(until=world.clock.now()) if past else Validity()
            world.remember(text, scope, plane=plane, status=status, validity=ended)
            told.append(Told(canary, scope, plane, counts=status is Status.ACCEPTED and not past))
        else:
            scope = replace(scope, conversation=chance.choice(NAMES[1:]))
            authority = chance.choice([*Authority, None])
            state = chance.choice([TranscriptState.ACTIVE] * 5 + list(TranscriptState))
            world.say(text, thread=scope, authority=authority, state=state)
            active = state is TranscriptState.ACTIVE
            told.append(Told(canary, scope, None, authority or Authority.LEGACY_TRANSCRIPT, active))
    return told


def canaries(report: object) -> set[str]:
    return set(CANARY.findall(full_repr(report)))


@pytest.mark.parametrize("seed", range(WORLDS))
def test_no_report_holds_what_a_model_may_not_see(world: World, seed: int) -> None:
    chance = random.Random(seed)
    space = f"space{seed}"
    told = fill(world, chance, space, 40)
    for _ in range(PROJECTIONS):
        identity = MemoryIdentity(space, chance.choice(["ana", None]), chance.choice([None, "helper"]))
        where = chance.choice([None, MemoryScope(chance.choice(["local", "mail"]), conversation_id="here")])
        channel = None if where is None or where.channel == "local" else "mail"
        thread = None if where is None else replace(identity.scope, channel=channel, conversation="here")
        policy = chance.random() < 0.5
        profile = chance.choice(list(PROFILES))
        runtime = world.runtime(identity, profile=profile, privacy=Privacy(private_plane_projection=policy))
        request = MemoryProjectionRequest(
            QUERY,
            system_max_len=chance.choice([1, 80, 120, 200, 500, 2_000, 100_000]),
            recent_messages_limit=chance.choice([0, 1, 8]),
            pressure=chance.choice(list(Pressure)),
            mode_input=ModeInput(foreground=chance.random() < 0.8),
            scope=where,
            include_private=chance.random() < 0.5,
            min_score=0.0,  # who may see a record is tested, not how well it answers
        )
        report: MemoryProjectionReport = world.run(runtime.project(request))
        normal = request.pressure is Pressure.NORMAL and request.mode_input.foreground
        private = policy and request.include_private and normal
        assert report.audit.private_gate.open == private
        may = {entry.canary for entry in told if entry.seen(identity, thread, private=private)}
        assert canaries(report) <= may
        most = scale_budget(render_budget(PROFILES[profile], request.system_max_len), request.pressure)
        assert len(report.system_memory_block) <= min(most, request.system_max_len)
        if not report.audit.truncated:
            assert canaries(report) == may
        again: MemoryProjectionReport = world.run(runtime.project(request))
        assert replace(again, lifecycle_report=report.lifecycle_report) == report

        openly = {entry.canary for entry in told if entry.seen(identity, thread, private=False)}
        recalled = world.run(runtime.recall(MemoryRecallRequest(QUERY, 200, scope=where, min_score=0.0)))
        assert canaries(recalled) <= openly
        assert {hit.text for hit in recalled.procedural_hits} | canaries(recalled.working) >= {
            entry.canary for entry in told if entry.canary in openly and entry.plane is not Plane.PROCEDURAL
        }
        inspected = world.run(runtime.inspect(MemoryInspectionRequest(QUERY, scope=where)))
        assert canaries(inspected) <= openly


def test_a_roomy_projection_is_often_whole(world: World) -> None:
    """Show that the comparison above, which needs a complete projection, is not vacuous."""
    chance = random.Random(99)
    told = fill(world, chance, "roomy", 150)
    identity = MemoryIdentity("roomy", "ana", "helper")
    runtime = world.runtime(identity)
    report = world.run(
        runtime.project(MemoryProjectionRequest(QUERY, 30_000, scope=MemoryScope(conversation_id="here"), min_score=0))
    )
    thread = replace(identity.scope, conversation="here")
    assert not report.audit.truncated
    found = canaries(report)
    assert found == {entry.canary for entry in told if entry.seen(identity, thread, private=False)}
    assert len([entry for entry in told if entry.canary in found and entry.plane is None]) > 1
    assert len([entry for entry in told if entry.canary in found and entry.plane is not None]) > 5
