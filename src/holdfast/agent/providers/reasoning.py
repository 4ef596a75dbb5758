"""Separate reasoning from a text that begins with it, between `<think>` and `</think>`."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from holdfast.agent.ports import ReasoningPiece, TextPiece

_BEGIN, _END = "<think>", "</think>"


class _State(Enum):
    UNKNOWN = auto()  # too little text to tell
    THINKING = auto()
    THOUGHT = auto()  # reasoning is over; blanks before the answer are dropped
    SAYING = auto()


class ReasoningSplitter:
    """Splits a streamed text. A possible beginning of a tag is held back until it is known."""

    def __init__(self) -> None:
        self._held = ""
        self._state = _State.UNKNOWN

    def take(self, text: str) -> Iterator[TextPiece | ReasoningPiece]:
        self._held += text
        if self._state is _State.UNKNOWN:
            self._begin()
        if self._state is _State.THINKING:
            yield from self._think()
        if self._state is _State.THOUGHT:
            self._held = self._held.lstrip()
            self._state = _State.SAYING if self._held else _State.THOUGHT
        if self._state is _State.SAYING:
            yield from self.end()

    def end(self) -> Iterator[TextPiece | ReasoningPiece]:
        """Yield text that was held back, and is no tag."""
        if self._held:
            yield ReasoningPiece(self._held) if self._state is _State.THINKING else TextPiece(self._held)
            self._held = ""

    def _begin(self) -> None:
        start = self._held.lstrip()
        if start.startswith(_BEGIN):
            self._state = _State.THINKING
            self._held = start.removeprefix(_BEGIN)
        elif not _BEGIN.startswith(start):
            self._state = _State.SAYING

    def _think(self) -> Iterator[ReasoningPiece]:
        thought, ended, rest = self._held.partition(_END)
        if ended:
            self._state = _State.THOUGHT
            self._held = rest
        else:
            held = next((size for size in range(len(_END) - 1, 0, -1) if thought.endswith(_END[:size])), 0)
            thought, self._held = thought[: len(thought) - held], thought[len(thought) - held :]
        if thought:
            yield ReasoningPiece(thought)
