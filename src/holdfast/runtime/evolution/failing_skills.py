"""Propose a change of a skill that failed twice: a new wording by the model, else a note that it needs a review.

A skill has one proposal that waits for a decision, whoever made it.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain import ids
from holdfast.domain.access import SYSTEM, Action, authorize
from holdfast.domain.events import EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.ids import MessageId
from holdfast.domain.jobs import Cause
from holdfast.domain.proposals import (
    MAX_PENDING,
    Candidate,
    GovernanceNoteCandidate,
    MemoryProposal,
    ProceduralMemoryCandidate,
    ProposalPolicy,
    ProposalRecord,
)
from holdfast.domain.runtime_api.skills import RuntimeSkillWrite
from holdfast.domain.runtime_skills import SkillContent, first_line
from holdfast.domain.skill_checks import reject_procedure
from holdfast.domain.skill_lineage import strategy_digest
from holdfast.domain.stored_proposals import ProposalStatus
from holdfast.domain.transcript import Message
from holdfast.ports import CurationResult, ProcedureReviser, Reader, Transaction
from holdfast.runtime.evolution.stored_proposal import add_proposal, validate
from holdfast.runtime.gate import Core
from holdfast.runtime.metering import report_costs, with_costs
from holdfast.runtime.skills.stored_skill import StoredSkill, find_skill
from holdfast.runtime.transcripts.model_input import model_usage, select_visible, select_visible_memories

# So many mismatches call for a change.
FAILURES = 2
_LOOKED_AT = 500
_MAX_EVENTS = 8
_MAX_MESSAGES = 32


def propose_review(
    transaction: Transaction, core: Core, governance: Governance, name: str, turn: Sequence[MessageId]
) -> str | None:
    """Propose to review or retire a skill, if it needs it. Return the id of the proposal."""
    skill = _failing_skill(transaction, governance, name)
    return None if skill is None else _add(transaction, core, governance, skill, turn, _note(skill), _author_of(None))


async def propose_revision(
    core: Core, governance: Governance, name: str, turn: Sequence[MessageId], cause: Cause
) -> str | None:
    """Propose the model's new wording of a skill, if it needs one; a review, if the model has none."""
    grant = authorize(SYSTEM, Action.WORK, governance.identity.scope)

    def look(reader: Reader) -> tuple[StoredSkill | None, list[Message]]:
        skill = _failing_skill(reader, governance, name)
        scopes = {} if skill is None else {each.scope: each for each in reader.records.messages(turn).values()}
        visible = [each.message for scope in scopes for each in select_visible(reader, scope, turn)]
        readable = skill is not None and select_visible_memories(reader, [skill.memory])
        return skill, visible if readable else []

    skill, messages = await core.store.read(grant, look)
    curator = core.curator
    if skill is None or curator is None:
        return None
    revised: CurationResult | None = None
    may_revise = messages and ProposalPolicy.of(governance.catalogue).compact_sandbox
    if may_revise and isinstance(curator, ProcedureReviser):
        note = skill.state.last_outcome_note
        revised = await curator.revise_procedure(messages, skill.content.procedure, note)
    found = None if revised is None else _rewording(skill, revised, governance.budget.source_chars)
    author = _author_of(None if found is None else curator.name)
    made: list[str | None] = []

    def store(transaction: Transaction) -> None:
        made.clear()  # a transaction may run twice
        current = _failing_skill(transaction, governance, name)
        if current is not None:
            candidate = found if found is not None and current.memory == skill.memory else _note(current)
            made.append(_add(transaction, core, governance, current, turn, candidate, author))

    usage = model_usage(curator, None, None if revised is None else revised.usage)
    effect = await with_costs(core, grant, usage, store, cause=cause)
    await core.store.write(grant, effect)
    report_costs(core, effect)
    return made[0] if made else None


def _author_of(model: str | None) -> str:
    return "maintain" if model is None else f"curator:{model}"


def _failing_skill(reader: Reader, governance: Governance, name: str) -> StoredSkill | None:
    """Return the skill if it failed often enough, and no proposal about it waits."""
    if not governance.catalogue[Action.PROPOSE].visible:
        return None
    scope = governance.identity.scope
    skill = find_skill(reader, [scope.partition], name)
    if skill is None or skill.state.mismatch_count < FAILURES or not skill.state.revision_pending:
        return None
    known = reader.proposals.is_cited(scope, skill.memory.id, ProposalStatus.PENDING)
    full = reader.proposals.count(scope, ProposalStatus.PENDING) >= MAX_PENDING
    return None if known or full else skill


def _note(skill: StoredSkill) -> GovernanceNoteCandidate:
    title = first_line(skill.content.title)
    return GovernanceNoteCandidate(skill.state.name, f"Review or retire the skill: {title}")


def _rewording(skill: StoredSkill, revised: CurationResult, max_chars: int) -> ProceduralMemoryCandidate | None:
    """Return the model's procedure, if it is one and differs from the known."""
    for each in revised.proposals:
        title, _, steps = each.text.partition("\n")
        known = skill.content
        same = strategy_digest(SkillContent("", steps)) == strategy_digest(SkillContent("", known.procedure))
        if reject_procedure(steps, max_chars) is None and not same:
            return ProceduralMemoryCandidate(
                RuntimeSkillWrite(
                    steps,
                    name=skill.state.name,
                    topic=known.topic or title,
                    title=known.title,
                    summary=first_line(steps),
                    citations=tuple(each.evidence)[:4],
                )
            )
    return None


def _add(
    transaction: Transaction,
    core: Core,
    governance: Governance,
    skill: StoredSkill,
    turn: Sequence[MessageId],
    candidate: Candidate,
    author: str,
) -> str | None:
    """Store the proposal with the outcomes as its evidence, if the profile allows any."""
    state = skill.state
    outcomes = _outcomes_of(transaction, skill)
    counts = f"failed {state.mismatch_count} times and succeeded {state.validated_success_count} times"
    proposal = MemoryProposal(
        core.ids.new(ids.PROPOSAL),
        governance.profile.name,
        (candidate,),
        (skill.memory.id, *outcomes, *turn[-_MAX_MESSAGES:]),
        # Without the note of the outcome, which stays with the skill alone.
        f"{state.name} {counts} when it was used.",
    )
    if not validate(governance, proposal).accepted:
        return None
    record = ProposalRecord(proposal, author)
    added = add_proposal(transaction, core, governance, record, Action.MAINTAIN, core.clock.now())
    return proposal.proposal_id if added else None


def _outcomes_of(reader: Reader, skill: StoredSkill) -> Sequence[str]:
    """Return the events of the last mismatches, the newest first."""
    events = reader.events.page(_LOOKED_AT, frozenset({EventKind.MAINTENANCE}))
    of_skill = (each for each in events if each.record_key == skill.memory.id)
    return [each.id for each in of_skill if each.details.get("outcome") == "mismatch"][:_MAX_EVENTS]
