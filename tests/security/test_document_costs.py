"""What a document costs is bounded by what is counted while it is parsed, whatever its bytes look like."""

from __future__ import annotations

import pytest
from tests.documents import files

from holdfast.documents.html import MAX_DEPTH
from holdfast.documents.limits import Limits
from holdfast.documents.pdf import MAX_PAGES
from holdfast.documents.reader import DocumentReader
from holdfast.errors import InvalidDocument
from holdfast.loops import run_sync

# Ends what is not bounded long before its time is up.
LIMITS = Limits(cpu_seconds=5)


def problem_of(content: bytes, name: str) -> str:
    with pytest.raises(InvalidDocument) as caught:
        run_sync(DocumentReader(LIMITS).read(content, None, name, "me"))
    return caught.value.problem


@pytest.mark.parametrize("piece", [b"<div/a>", b"<div></b>", b"<div\x0c>", b"<x-y a='>'>", b"<DIV<DIV>"])
def test_elements_that_nest_200_000_deep_are_refused_however_they_are_written(piece: bytes) -> None:
    assert f"more than {MAX_DEPTH:,} deep" in problem_of(piece * 200_000 + b"deep", "page.html")


def test_end_tags_that_close_nothing_cost_the_depth_and_no_more() -> None:
    page = b"<i>" * (MAX_DEPTH - 3) + b"</x>" * 100_000 + b"text"
    assert run_sync(DocumentReader(LIMITS).read(page, None, "page.html", "me")).chunks == ("text",)


def test_a_pdf_of_very_many_pages_is_refused_whatever_number_it_gives() -> None:
    many = files.pdf_of_streams([b"BT ET"] * (MAX_PAGES + 1))
    modest = many.replace(b"/Count %d" % (MAX_PAGES + 1), b"/Count 1".ljust(11))
    assert f"more than {MAX_PAGES:,} pages" in problem_of(modest, "many.pdf")


@pytest.mark.parametrize("line", [b"> ", b"- ", b"[", b"*a **b ", b"#", b"<!--", b"```\n", b"1. "])
def test_markdown_takes_time_linear_in_its_size(line: bytes) -> None:
    """It is read in our own process, which nothing ends: all are read, however they nest."""
    document = run_sync(DocumentReader(LIMITS).read(b"text\n" + line * (200_000 // len(line)), None, "a.md", "me"))
    assert document.chunks[0].startswith("text")
