"""Proposals: read as they were put, of one scope alone, and gone with any record that they rest on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.scope import Scope
from holdfast.domain.stored_proposals import ProposalStatus, StoredProposal
from holdfast.domain.transcript_turns import TranscriptState
from holdfast.errors import AccessDenied
from holdfast.ports import Store
from holdfast.testing.store_suite.scribe import (
    ANA,
    BOB,
    EVERYTHING,
    SPACE,
    Scribe,
    add,
    forget,
    put,
    read_grant,
    scenario,
    write_grant,
)

_HOME = Scope(subject="ana")
_PENDING = ProposalStatus.PENDING


def _proposal(scribe: Scribe, scope: Scope = _HOME, name: str = "p-1") -> StoredProposal:
    return StoredProposal(scope, name, _PENDING, f'{{"rationale": "as {name} says ü"}}', scribe.clock.step())


async def _add(store: Store, proposal: StoredProposal, *record_ids: str) -> bool:
    return await store.write(write_grant(proposal.scope), lambda t: t.proposals.add(proposal, record_ids))


async def _pending(store: Store, scope: Scope = _HOME) -> list[str]:
    found = await store.read(SPACE, lambda r: r.proposals.page(scope, _PENDING, 10))
    return [each.proposal_id for each in found]


async def _check(store: Store) -> None:
    _, findings = await store.read(EVERYTHING, lambda r: r.maintenance.integrity("contract:2:1"))
    assert findings == []


class ProposalContract:
    """The promises of every store about proposals."""

    @scenario
    async def test_a_proposal_is_read_as_it_was_put_and_as_it_was_decided(self, store: Store) -> None:
        scribe = Scribe()
        first, second = _proposal(scribe), _proposal(scribe, name="p-2")
        assert await _add(store, first, "mem_none")
        assert await _add(store, second)
        assert not await _add(store, replace(first, document="{}"))
        assert await store.read(SPACE, lambda r: r.proposals.find(_HOME, "p-1")) == first
        assert await store.read(SPACE, lambda r: r.proposals.find(_HOME, "p-3")) is None
        assert await _pending(store) == ["p-2", "p-1"]
        assert await store.read(SPACE, lambda r: r.proposals.is_cited(_HOME, "mem_none", _PENDING))
        decided = replace(first, status=ProposalStatus.REJECTED, document='{"by": "ü"}', decided_at=scribe.clock.step())
        await store.write(write_grant(_HOME), lambda t: t.proposals.replace(decided))
        assert list(await store.read(SPACE, lambda r: r.proposals.page(_HOME, None, 10))) == [second, decided]
        assert list(await store.read(SPACE, lambda r: r.proposals.page(_HOME, None, 1))) == [second]
        assert await store.read(SPACE, lambda r: r.proposals.count(_HOME, _PENDING)) == 1
        assert not await store.read(SPACE, lambda r: r.proposals.is_cited(_HOME, "mem_none", _PENDING))
        await _check(store)

    @scenario
    async def test_a_grant_never_sees_the_proposal_of_another(self, store: Store) -> None:
        proposal = _proposal(Scribe())
        await _add(store, proposal, "mem_none")
        for grant in (read_grant(BOB), read_grant(Scope(space="other", subject="ana")), read_grant(Scope(app="mail"))):
            assert await store.read(grant, lambda r: r.proposals.find(_HOME, "p-1")) is None
            assert not await store.read(grant, lambda r: r.proposals.page(_HOME, None, 10))
            assert not await store.read(grant, lambda r: r.proposals.count(_HOME, _PENDING))
            assert not await store.read(grant, lambda r: r.proposals.is_cited(_HOME, "mem_none", _PENDING))
        with pytest.raises(AccessDenied):
            await store.write(write_grant(BOB), lambda t: t.proposals.add(proposal, ()))
        other = replace(proposal, scope=Scope(subject="ana", app="mail"))
        assert await _add(store, other)
        assert await store.read(SPACE, lambda r: r.proposals.find(other.scope, "p-1")) == other

    @scenario
    async def test_a_proposal_goes_with_any_record_that_it_rests_on(self, store: Store) -> None:
        scribe = Scribe()
        message, memory = scribe.message("It rained."), scribe.revision(_HOME, "It rains.")
        await add(store, scribe.turn(ANA, message))
        await put(store, memory)
        message_id = (await store.read(SPACE, lambda r: r.transcripts.last_turns(ANA, 1)))[0].messages[0].id
        await _add(store, _proposal(scribe, name="by memory"), memory.id)
        await _add(store, _proposal(scribe, name="by both"), memory.id, message_id)
        await _add(store, _proposal(scribe, name="by message"), message_id)
        await _add(store, _proposal(scribe, name="by none"), "mem_none")
        await forget(store, ForgetTarget(ids=(memory.id,)), write_grant(_HOME), scribe.clock.step())
        assert await _pending(store) == ["by none", "by message"]
        await forget(store, ForgetTarget(ids=(message_id,)), write_grant(_HOME), scribe.clock.step())
        assert await _pending(store) == ["by none"]
        await forget(store, ForgetTarget(subject="ana"), write_grant(Scope()), scribe.clock.step())
        assert await _pending(store) == []
        assert await _add(store, _proposal(scribe, name="by none"))
        await _check(store)

    @scenario
    async def test_a_proposal_is_hidden_while_a_record_is_masked_and_gone_when_it_is_deleted(
        self, store: Store
    ) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, scribe.message("It rained.")))
        message_id = (await store.read(SPACE, lambda r: r.transcripts.last_turns(ANA, 1)))[0].messages[0].id
        await _add(store, _proposal(scribe), message_id)
        for state, shown in (
            (TranscriptState.MASKED, []),
            (TranscriptState.ACTIVE, ["p-1"]),
            (TranscriptState.RAW_DELETED, []),
        ):
            at = scribe.clock.step()
            await store.write(
                write_grant(ANA),
                lambda t, to=state, at=at: t.transcripts.set_state(ANA, [1], to, at),  # type: ignore[misc]
            )
            assert await _pending(store) == shown
        assert await _add(store, _proposal(scribe))
        await _check(store)
