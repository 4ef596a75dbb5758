"""Reads plain text: its paragraphs."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.documents.blocks import Block, Parsed, paragraphs, parsed


def read_plain(text: str, max_characters: int) -> Parsed:
    return parsed(None, _blocks(text), max_characters)


def _blocks(text: str) -> Iterator[Block]:
    for paragraph in paragraphs(text):
        yield Block(paragraph)
