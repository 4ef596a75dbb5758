"""Convert stored records to archived ones for export: turns through a view, memories with or without evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.domain.archive_format import (
    ArchivedMemory,
    ArchivedMessage,
    ArchivedResource,
    ArchivedRevision,
    ArchivedSkill,
    ArchivedTurn,
)
from holdfast.domain.field_copies import copy_fields
from holdfast.domain.ids import MessageId
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.redaction import MAX_BUDGET, RedactedMessage, RedactedTurn, TranscriptGovernanceBudget, redact_turn
from holdfast.domain.resources import Resource
from holdfast.domain.runtime_skills import SkillState
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message
from holdfast.domain.transcript_turns import TranscriptState, TranscriptTurn, View
from holdfast.ports import Reader

# Exports are complete: budgets only limit what is displayed.
_NO_BUDGET = TranscriptGovernanceBudget(MAX_BUDGET, MAX_BUDGET, MAX_BUDGET, MAX_BUDGET, MAX_BUDGET)
_WITHHELD = (TranscriptState.MASKED, TranscriptState.RAW_DELETED)


def archive_turns(
    reader: Reader, thread: Scope, turns: Sequence[TranscriptTurn], view: View
) -> tuple[list[ArchivedTurn], int]:
    """Return the turns as the view shows them, and the number of messages it withholds.

    In the raw view a masked or deleted turn keeps its place without content: a masked turn is exported as deleted. In
    other views such turns are left out.
    """
    readable = [message.id for turn in turns if turn.state not in _WITHHELD for message in turn.messages]
    stored = reader.records.messages(readable)
    archive: list[ArchivedTurn] = []
    withheld = 0
    for turn in turns:
        shown = redact_turn(turn, view, _NO_BUDGET)
        withheld += shown.audit.redacted_messages
        if turn.state not in _WITHHELD:
            archived = _turn(thread, turn, shown, stored)
        elif view is View.RAW_OWNER_ONLY:
            archived = _deleted_turn(thread, turn, shown)
        else:
            continue
        if archived.messages:
            archive.append(archived)
    return archive, withheld


def _turn(thread: Scope, turn: TranscriptTurn, shown: RedactedTurn, stored: Mapping[str, Message]) -> ArchivedTurn:
    pairs = [
        (stored[message.id], message)
        for message in shown.messages
        if message.redaction is None and message.id in stored
    ]
    first = pairs[0][0] if pairs else None
    return ArchivedTurn(
        scope=thread if first is None else first.scope,
        id=turn.id,
        state=turn.state,
        committed_at=turn.committed_at,
        messages=tuple(_message(message_row, message) for message_row, message in pairs),
        source=None if first is None else first.source,
        delivery=turn.delivery,
        attribution=turn.attribution,
        host_refs=tuple(reference.ref for reference in shown.host_refs),
    )


def _deleted_turn(thread: Scope, turn: TranscriptTurn, shown: RedactedTurn) -> ArchivedTurn:
    return ArchivedTurn(
        scope=thread,
        id=turn.id,
        state=TranscriptState.RAW_DELETED,
        committed_at=turn.committed_at,
        messages=tuple(ArchivedMessage(message.id, message.role) for message in shown.messages),
        delivery=turn.delivery,
        attribution=turn.attribution,
        host_refs=tuple(reference.ref for reference in shown.host_refs),
    )


def _message(message: Message, shown: RedactedMessage) -> ArchivedMessage:
    assert shown.authority is not None
    return copy_fields(ArchivedMessage, message, text=shown.text, authority=shown.authority)


Links = Mapping[tuple[str, int], Sequence[MessageId]]


def archive_memory(revisions: Sequence[MemoryRecord], links: Links, skill: SkillState | None = None) -> ArchivedMemory:
    """Convert a memory's revisions, each with its own evidence out of `links`, and its state as a skill."""
    return ArchivedMemory(
        id=revisions[0].id,
        revisions=tuple(
            copy_fields(ArchivedRevision, each, evidence=tuple(links.get((each.id, each.revision), ())))
            for each in revisions
        ),
        skill=None if skill is None else copy_fields(ArchivedSkill, skill),
    )


def archive_resource(resource: Resource) -> ArchivedResource:
    return copy_fields(ArchivedResource, resource)
