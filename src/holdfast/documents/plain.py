"""Reads plain text: its paragraphs."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.documents.blocks import DocumentBlock, ParsedDocument, build_document, paragraphs


def read_plain(text: str, max_characters: int) -> ParsedDocument:
    return build_document(None, _blocks(text), max_characters)


def _blocks(text: str) -> Iterator[DocumentBlock]:
    for paragraph in paragraphs(text):
        yield DocumentBlock(paragraph)
