"""Cuts blocks into chunks: pieces that can be found and read on their own.

A chunk ends at the end of a section, else of a paragraph, a sentence or a word. Nothing is lost or reordered. A chunk
that does not begin with its section's heading starts with the headings it is under. Takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from holdfast.documents.blocks import DocumentBlock
from holdfast.documents.limits import CHUNK_CHARS
from holdfast.errors import InvalidDocument

_SENTENCE_END = re.compile(r"\n+|(?<=[.!?…])[ \t]+|(?<=[。！？])")
_BETWEEN_HEADINGS = " › "
_BETWEEN_BLOCKS = "\n\n"
# A longer heading is too long to repeat in every chunk.
_MAX_HEADING_CHARS = CHUNK_CHARS // 6
_MAX_CONTEXT_CHARS = CHUNK_CHARS // 3
# The room left in a chunk with the longest context.
_ROOM = CHUNK_CHARS - _MAX_CONTEXT_CHARS - len(_BETWEEN_BLOCKS)
# Shorter sections share a chunk with the next one: a single line gives misleading search hits.
_ENOUGH_CHARS = CHUNK_CHARS // 4


def cut_document(blocks: Iterable[DocumentBlock], max_chunks: int) -> tuple[str, ...]:
    """Return the chunks of a document, or raise `InvalidDocument` if there are too many."""
    chunks = tuple(islice(split_into_chunks(blocks), max_chunks + 1))
    if len(chunks) > max_chunks:
        raise too_many_chunks(max_chunks)
    return chunks


def too_many_chunks(most: int) -> InvalidDocument:
    return InvalidDocument("content", f"gives more than {most:,} chunks; split it")


def split_into_chunks(blocks: Iterable[DocumentBlock]) -> Iterator[str]:
    """Yield chunks of at most `CHUNK_CHARS`, none of them empty."""
    gathering = _Chunk("")
    path: list[DocumentBlock] = []
    for block in blocks:
        if not block.text.strip():
            continue
        if block.level:
            path = [heading for heading in path if heading.level < block.level]
            if gathering.can_stand_alone:
                yield gathering.text
                gathering = _Chunk(_context(path))
            path.append(block)
        between = _BETWEEN_BLOCKS
        for piece, joint in _pieces(block.text):
            if not gathering.has_room_for(between, piece):
                yield gathering.text
                gathering = _Chunk(_context(path[:-1] if block.level else path), continues=not block.level)
            gathering.put(between, piece)
            between = joint
        gathering.note_text(not block.level)
    if not gathering.is_empty:
        yield gathering.text


class _Chunk:
    """A chunk under construction, after its context of headings."""

    def __init__(self, context: str, *, continues: bool = False) -> None:
        self._continues = continues
        self._parts = [context] if context else []
        self._context_chars = self._chars = len(context)
        self._more_than_headings = False

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def is_empty(self) -> bool:
        return self._chars == self._context_chars

    @property
    def can_stand_alone(self) -> bool:
        """True if it can stand alone. The rest of a section from an earlier chunk can: its headings are its context."""
        enough = self._continues or self._chars - self._context_chars >= _ENOUGH_CHARS
        return self._more_than_headings and enough

    def has_room_for(self, between: str, piece: str) -> bool:
        return self.is_empty or self._chars + len(between) + len(piece) <= CHUNK_CHARS

    def put(self, between: str, piece: str) -> None:
        if self.is_empty:
            between = _BETWEEN_BLOCKS if self._parts else ""
        self._parts += (between, piece)
        self._chars += len(between) + len(piece)

    def note_text(self, more: bool) -> None:
        self._more_than_headings = self._more_than_headings or more


def _context(path: list[DocumentBlock]) -> str:
    """Join the innermost headings that fit, outermost first."""
    shown: list[str] = []
    left = _MAX_CONTEXT_CHARS
    for heading in reversed(path):
        text = " ".join(heading.text.split()) if len(heading.text) <= _MAX_HEADING_CHARS else ""
        left -= len(text) + len(_BETWEEN_HEADINGS)
        if left < 0:
            break
        if text:
            shown.append(text)
    return _BETWEEN_HEADINGS.join(reversed(shown))


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the text if it fits, else its sentences, split at words if needed; each with the separator after it."""
    if len(text) <= _ROOM:
        yield text, _BETWEEN_BLOCKS
        return
    start = 0
    for found in _SENTENCE_END.finditer(text):
        end, joint = found.start(), found.group()
        yield from _split_at_words(text, start, end, "\n" if "\n" in joint and joint != _BETWEEN_BLOCKS else joint)
        start = found.end()
    yield from _split_at_words(text, start, len(text), _BETWEEN_BLOCKS)


def _split_at_words(text: str, start: int, end: int, joint: str) -> Iterator[tuple[str, str]]:
    while end - start > _ROOM:
        space = max(text.rfind(sign, start + _ROOM // 2, start + _ROOM) for sign in " \t\u3000")
        at = space if space >= 0 else start + _ROOM
        if piece := text[start:at].strip():
            yield piece, text[space] if space >= 0 else ""
        start = at + (space >= 0)
    if piece := text[start:end].rstrip():
        yield piece, joint
