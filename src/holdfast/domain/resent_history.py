"""Find the new messages of a delivered turn: hosts often send their history again with it.

The end of the conversation is aligned with the beginning of the delivery, by role and exact text. What a host leaves
out of its history (private messages, the output of tools, instructions) does not hide that the rest is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import DELIVERIES, SkippedReason, TurnDelta, Utterance

_DIALOGUE = frozenset({Role.USER, Role.ASSISTANT})


@dataclass(frozen=True, slots=True)
class CommitDecision:
    """The messages to commit, or the reason why there are none: exactly one of the two."""

    messages: tuple[Utterance, ...]
    skipped_reason: SkippedReason | None = None


def decide_commit(delta: TurnDelta, tail: Sequence[Utterance]) -> CommitDecision:
    """Find the messages that are new after `tail`, the last messages of the conversation, see `is_long_enough`.

    The answer is compared too: a turn that failed and is delivered now commits only its answer, and one that is
    delivered again commits nothing.
    """
    reason = DELIVERIES[delta.status].reason
    if reason is not None:
        return CommitDecision((), reason)
    spoken = delta.messages
    new = spoken[count_known_messages(delta, tail) :]
    return CommitDecision(new, None if new else SkippedReason.ALREADY_COMMITTED)


def count_known_messages(delta: TurnDelta, tail: Sequence[Utterance]) -> int:
    """Count the first messages of a delivery that the conversation already ends with."""
    return overlap(tail, delta.messages, answered=delta.old_input_count, asked=len(delta.input_messages))


def is_long_enough(tail: Sequence[Utterance], delta: TurnDelta) -> bool:
    """True if the tail has as many messages as the delivery, besides those that a host may leave out."""
    return sum(not _may_be_omitted(message) for message in tail) >= len(delta.messages)


def match_redelivery(known: Sequence[Utterance], spoken: Sequence[Utterance]) -> int | None:
    """Count the first messages of a redelivered turn that are stored under its id; None if they differ.

    The delivery may begin with older messages, and may continue after the stored ones.
    """
    for length in range(len(spoken), 0, -1):
        if all(
            _may_be_same(stored, new) for stored, new in zip(reversed(known), reversed(spoken[:length]), strict=False)
        ):
            return length
    return None


def _may_be_same(stored: Utterance, new: Utterance) -> bool:
    """True if they may be the same message. If the stored text was deleted, only the roles are compared."""
    return stored.role == new.role and stored.text in (None, new.text)


def _may_be_omitted(message: Utterance) -> bool:
    return message.is_private or message.role not in _DIALOGUE


def overlap(tail: Sequence[Utterance], incoming: Sequence[Utterance], *, answered: int = 0, asked: int = 0) -> int:
    """Return the length of the longest prefix of `incoming` that the tail ends with.

    The first `answered` incoming messages certainly are old, and the first `asked` are the input. Private messages of
    the tail may be missing. So may output of tools and instructions, on either side, if the dialogue matches.

    Deleted text must not come back with a host's history. So a message without text matches any of its role; but not
    the last input or the answer, which are new.
    """
    history = max(answered, asked - 1)
    return max(_align(tail, incoming, history, with_tools) for with_tools in (True, False))


def _align(tail: Sequence[Utterance], incoming: Sequence[Utterance], history: int, with_tools: bool) -> int:
    """Return the longest aligned prefix. Without `with_tools`, messages outside the dialogue may be skipped.

    First instructions may always be skipped: hosts put them before their history.

    Sets of places in the tail are bits of an integer: bit `n` is set if the tail's first `n` messages can end an
    alignment of the incoming messages so far.
    """
    texts: dict[tuple[Role, str | None], int] = defaultdict(int)
    for place, message in enumerate(tail, 1):
        texts[message.role, message.text] |= 1 << place
    omitted = [message.is_private if with_tools else _may_be_omitted(message) for message in tail]
    skippable = sum(1 << place for place, may_skip in enumerate(omitted, 1) if may_skip)
    ends = 1 << len(tail)
    while omitted and omitted.pop():
        ends |= ends >> 1
    # Before any match, an alignment may begin anywhere. It counts once its dialogue matches. Output of tools after that
    # is known only if none of it is skipped, as in `close`.
    begun, silent, aligned, close = (2 << len(tail)) - 1, 0, 0, 0
    longest = 0
    for count, message in enumerate(incoming, 1):
        is_matched = with_tools or message.role in _DIALOGUE
        places = texts.get((message.role, message.text), 0)
        if count <= history:
            places |= texts.get((message.role, None), 0)
        first, further = (begun | silent) << 1 & places, aligned << 1 & places
        matched = further | first if is_matched else close << 1 & places
        if matched & ends:
            longest = count
        close = _skip(matched, skippable)
        if is_matched:
            begun = begun if message.role is Role.SYSTEM else 0
            silent, aligned = 0, close
        else:
            silent, aligned = _skip(silent | first, skippable), _skip(aligned | further, skippable)
    return longest


def _skip(places: int, skippable: int) -> int:
    """Add the places that are reached by skipping messages of the tail."""
    seeds = places << 1 & skippable
    # The carry of the addition runs through each run of skippable messages, from the first seed on.
    return places | seeds | (skippable & ~(skippable + seeds))
