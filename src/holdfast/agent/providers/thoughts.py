"""Thoughts that a server leaves in the text, between `<think>` and `</think>` at its beginning, told apart from it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from holdfast.agent.ports import ReasoningPiece, TextPiece

_BEGIN, _END = "<think>", "</think>"


class _State(Enum):
    UNKNOWN = auto()  # how the text begins
    THINKING = auto()
    THOUGHT = auto()  # to the end; the answer begins with its first word
    SAYING = auto()


class Thoughts:
    """Takes a text piece by piece. What may yet turn out to be a mark is held back until it is known."""

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
        """What was held back, and turned out to be nothing."""
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
            kept = next((size for size in range(len(_END) - 1, 0, -1) if thought.endswith(_END[:size])), 0)
            thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
        if thought:
            yield ReasoningPiece(thought)
