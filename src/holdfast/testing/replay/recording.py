"""Records a fixture from a conversation in a store. Its structure is kept, and none of its words.

Kept are the roles, authorities and states of messages and turns, the kinds of references, and which words are the
same. Names, ids, times, metadata and numbers are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.domain.identity import MemoryScope
from holdfast.domain.profiles import DEFAULT_PROFILE
from holdfast.domain.redaction import RedactedHostRef, RedactedMessage, RedactedTurn
from holdfast.domain.runtime_api.transcripts import MemoryTranscriptReplayRequest
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import TranscriptState, Transition, View
from holdfast.errors import NotFound
from holdfast.sdk.transcripts import TranscriptOperations
from holdfast.testing.replay.fixture import ReplayFixture
from holdfast.testing.replay.pseudonyms import Pseudonyms

MAX_TURNS = 200
_PAGE = 16
_QUERIES = 5
_QUERY_WORDS = 8
# The text of a message that even its owner can no longer read.
_WITHHELD = "withheld"
_TRANSITIONS = {
    TranscriptState.ARCHIVED: Transition.ARCHIVE,
    TranscriptState.MASKED: Transition.MASK,
    TranscriptState.RAW_DELETED: Transition.DELETE_RAW,
}
_Step = dict[str, Any]


async def record_conversation(
    runtime: TranscriptOperations,
    where: MemoryScope,
    fixture_id: str,
    *,
    max_turns: int = MAX_TURNS,
    profile: str = DEFAULT_PROFILE,
) -> ReplayFixture:
    """Return a fixture with the turns of a conversation, their states, and questions about them.

    The caller must be allowed to read the raw conversation. Nothing is expected yet: `record_expectation` adds the
    result of a run.
    """
    turns = await _read_turns(runtime, where, max_turns)
    if not turns:
        raise NotFound("there are no turns in this conversation, or not for this owner")
    words = Pseudonyms(_texts(turns))
    steps = [_commit(turn, words) for turn in turns]
    steps += [
        _step("transcript_lifecycle", transition=str(_TRANSITIONS[turn.state]), reason="recorded", turn_id=_name(turn))
        for turn in turns
        if turn.state in _TRANSITIONS
    ]
    steps += [_step("replay_transcript", view=str(view), limit=_PAGE) for view in View]
    steps += _questions(turns, words)
    return ReplayFixture(fixture_id, (*steps, _step("replay"), _step("inspect")), profile)


async def _read_turns(runtime: TranscriptOperations, where: MemoryScope, max_turns: int) -> list[RedactedTurn]:
    """Return the first turns of the conversation, as their owner sees them."""
    turns: list[RedactedTurn] = []
    cursor = None
    while len(turns) < max_turns:
        limit = min(_PAGE, max_turns - len(turns))
        request = MemoryTranscriptReplayRequest(View.RAW_OWNER_ONLY, where, limit, cursor)
        page = await runtime.replay_transcript(request)
        turns += page.slice.turns
        cursor = page.next_cursor
        if cursor is None:
            break
    return turns


def _texts(turns: Sequence[RedactedTurn]) -> Iterator[str]:
    for turn in turns:
        yield from (message.text for message in turn.messages if message.text is not None)
        for shown in turn.host_refs:
            yield from _names_of(shown)


def _names_of(shown: RedactedHostRef) -> Iterator[str]:
    ref = shown.ref
    yield from (ref.host_kind, ref.business_ref_type, ref.business_ref_id)
    if ref.label is not None:
        yield ref.label


def _commit(turn: RedactedTurn, words: Pseudonyms) -> _Step:
    messages = [_message(message, words) for message in turn.messages]
    refs = [_reference(shown, words) for shown in turn.host_refs]
    return _step("commit_transcript", turn={"turn_id": _name(turn), "messages": messages}, host_refs=refs)


def _message(message: RedactedMessage, words: Pseudonyms) -> _Step:
    authority = {} if message.authority is None else {"authority": str(message.authority)}
    text = _WITHHELD if message.text is None else words.replace(message.text)
    return {"text": text, "role": str(message.role), **authority}


def _reference(shown: RedactedHostRef, words: Pseudonyms) -> _Step:
    ref = shown.ref
    named = {name: words.replace(getattr(ref, name)) for name in ("host_kind", "business_ref_type", "business_ref_id")}
    label = None if ref.label is None else words.replace(ref.label)
    return {**named, "relation": str(ref.relation), "visibility": str(ref.visibility), "label": label}


def _questions(turns: Sequence[RedactedTurn], words: Pseudonyms) -> Iterator[_Step]:
    """Yield questions in the words of the last messages of users."""
    texts = [
        message.text
        for turn in turns
        if turn.state is TranscriptState.ACTIVE
        for message in turn.messages
        if message.role is Role.USER and message.text is not None
    ]
    queries = [" ".join(words.replace(text).split()[:_QUERY_WORDS]) for text in texts[-_QUERIES:]]
    for query in dict.fromkeys(queries):
        yield _step("recall", query=query)
    if queries:
        yield _step("project", user_query=queries[-1])


def _name(turn: RedactedTurn) -> str:
    return f"turn-{turn.sequence}"


def _step(operation: str, **arguments: Any) -> _Step:
    return {"operation": operation, **arguments}
