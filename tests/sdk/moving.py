"""A space with every kind of content, and runtimes to move it. Each text states whether it may be shown."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from holdfast.app import Engine, open_engine
from holdfast.domain.access import LOCAL_OPERATOR, SYSTEM, Action, Actor, authorize
from holdfast.domain.capabilities import Circumstances, catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.ids import MessageId, TurnId
from holdfast.domain.memory import Plane
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import (
    ActorAttribution,
    Authority,
    DeliveryStatus,
    HostOpaqueRef,
    HostRefVisibility,
    Relation,
    TranscriptState,
)
from holdfast.library import AsyncMemory
from holdfast.ports import NewMessage, NewTurn, Transaction
from holdfast.sdk.transfer import TransferOperations
from holdfast.search.analyzer import TextAnalyzer
from holdfast.settings import Settings

SPACE = "home"
OPEN, SECRET = "open", "secret"  # every text begins with one of these
EVERYTHING = authorize(SYSTEM, Action.WORK, Scope(space=EVERYWHERE))
SAID_AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def governance(
    space: str = SPACE,
    subject: str | None = None,
    agent: str | None = None,
    profile: str = DEFAULT_PROFILE,
    **given: Any,
) -> Governance:
    found = profile_of(profile)
    return Governance(MemoryIdentity(space, subject, agent), found, catalogue(found, Circumstances(**given)))


@contextlib.asynccontextmanager
async def running(location: str, **given: Any) -> AsyncIterator[Engine]:
    engine = await open_engine(location, Settings(), embedder="fake", work=False, **given)
    try:
        yield engine
    finally:
        await engine.close()


def runtime(engine: Engine, actor: Actor = LOCAL_OPERATOR, **given: Any) -> TransferOperations:
    return TransferOperations(engine, actor, governance(**given))


@dataclass(frozen=True)
class Said:
    text: str
    authority: Authority | None = None
    role: Role = Role.USER


async def commit(
    engine: Engine,
    thread: Scope,
    turn_id: str,
    said: Sequence[Said],
    state: TranscriptState = TranscriptState.ACTIVE,
    host_refs: Sequence[HostOpaqueRef] = (),
    chat_id: str | None = None,
) -> tuple[MessageId, ...]:
    """Commit a turn as a host does, directly into the store."""
    core = engine._core
    analyzer = TextAnalyzer()
    now = core.clock.now()
    messages = [
        NewMessage(
            id=MessageId(core.ids.new("msg")),
            text=each.text,
            sender="Ana",
            role=each.role,
            said_at=now,
            said_at_given=False,
            external_id=None,
            metadata={"note": each.text[:40]},
            analysis=analyzer.analyze(each.text),
            authority=each.authority,
        )
        for each in said
    ]
    turn = NewTurn(
        id=TurnId(core.ids.new("turn")),
        scope=thread,
        source=None,
        recorded_at=now,
        messages=messages,
        external_id=turn_id,
        delivery=DeliveryStatus.DELIVERED,
        attribution=ActorAttribution(speaker_id="ana", triggered_by="test"),
        host_refs=host_refs,
    )

    def work(transaction: Transaction) -> None:
        stored = transaction.transcripts.add_turn(turn, core.embedder.fingerprint, analyzer.version)
        assert stored.sequence is not None
        if state is not TranscriptState.ACTIVE:
            transaction.transcripts.set_state(thread, [stored.sequence], state, now)
        if chat_id is not None:
            transaction.aliases.put(thread, chat_id, now)

    await core.store.write(EVERYTHING, work)
    return tuple(message.id for message in messages)


def ref(visibility: HostRefVisibility, label: str) -> HostOpaqueRef:
    return HostOpaqueRef("crm", "ticket", f"{label}-{visibility}", Relation.RELATED, visibility, label)


async def furnish(engine: Engine) -> None:
    """Fill the space with every kind of content it can hold."""
    memory = AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE)
    added = await memory.add(
        [
            {"text": "open: I moved to Lisbon.", "sender": "Ana", "id": "m-1", "timestamp": SAID_AT},
            {"text": "open: Noted.", "role": "assistant", "metadata": {"model": "x"}},
        ],
        subject="ana",
        conversation="plain",
        channel="web",
        run="r1",
    )
    first, second = (str(found) for found in added.message_ids)
    await memory.add("open: ñandú 你好 \u2028 done", subject="bob", conversation="plain")
    await memory.add("open: for everybody", conversation="hall")
    await memory.add("open: the agent's own", agent="helper", conversation="diary")
    tea = await memory.remember(
        "open: Ana likes tea.",
        subject="ana",
        evidence=[first],
        metadata={"k": "v", "n": 3, "r": 1.5, "yes": True, "none": None},
    )
    await memory.correct(tea.id, "open: Ana likes green tea.", subject="ana", reason="she said so")
    await memory.correct(second, "open: Noted, thanks.", subject="ana")
    await memory.remember(
        "open: The house has a garden.", valid_from="2020-01-01", valid_until="2030-01-01", source="web"
    )
    await memory.remember("secret: a private thought", subject="ana", plane=Plane.PRIVATE, evidence=[first])
    await memory.remember("secret: a soul candidate", subject="ana", plane=Plane.SOUL_CANDIDATE)
    await memory.remember("secret: not decided yet", subject="ana", quarantined=True)
    await memory.add_resource(b"open: How to feed the cat.\n", name="open-guide.txt", subject="ana")
    await furnish_transcripts(engine)


async def furnish_transcripts(engine: Engine) -> None:
    thread = Scope(space=SPACE, subject="ana", channel="chat", conversation="governed")
    private = [Said(f"secret: {authority}", authority) for authority in PRIVATE]
    refs = [
        ref(visibility, OPEN if visibility is HostRefVisibility.EXPORT else SECRET) for visibility in HostRefVisibility
    ]
    await commit(
        engine,
        thread,
        "host-1",
        [Said("open: asserted", Authority.USER_ASSERTED), *private, Said("open: answered", role=Role.ASSISTANT)],
        host_refs=refs,
        chat_id="secret-chat",
    )
    await commit(engine, thread, "host-2", [Said("open: archived")], TranscriptState.ARCHIVED)
    await commit(engine, thread, "host-3", [Said("masked: gone")], TranscriptState.MASKED)
    await commit(engine, thread, "host-4", [Said("deleted: gone")], TranscriptState.RAW_DELETED)
    await commit(engine, thread, "host-5", [Said("secret: alone", Authority.SOUL_GOVERNANCE)])
    await commit(engine, thread, "host-6", [Said("open: the last")])


PRIVATE = (Authority.SOUL_GOVERNANCE, Authority.PRIVATE_GARDEN_INTERNAL, Authority.OPERATOR_DIAGNOSTIC)


async def facts(engine: Engine) -> dict[str, object]:
    """Count the contents of the whole store, to check that nothing changed."""
    core = engine._core
    counts = await core.store.read(EVERYTHING, lambda reader: reader.maintenance.counts(core.embedder.fingerprint, 1))
    events = await core.store.read(EVERYTHING, lambda reader: len(reader.events.page(10_000)))
    jobs = await core.store.read(EVERYTHING, lambda reader: len(reader.jobs.newest()))
    return {**counts, "pending_vectors": 0, "events": events, "jobs": jobs}


async def rows(engine: Engine, action: Action) -> list[tuple[str, str | None]]:
    """Return the outcomes of an action's calls, oldest first. Commits the pending rows of reads first."""
    await engine._core.store.wait_for_audits()
    found = await engine._core.store.read(EVERYTHING, lambda reader: reader.operations.page(limit=1_000))
    return [(row.outcome.value, row.error_code) for row in reversed(found) if row.action is action]
