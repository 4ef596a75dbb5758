"""A file that cannot or must not be read raises `InvalidDocument`, which names the field and says what to do."""

from __future__ import annotations

import asyncio
import gzip
import importlib.util
import io
import random
import zipfile

import pytest
from docx.document import Document as WordDocument
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.documents import files
from tests.documents.conftest import Read, Refusal

from holdfast.documents.archive import MAX_ENTRIES
from holdfast.documents.file_types import FileType
from holdfast.documents.kernel import Barrier
from holdfast.documents.limits import Limits
from holdfast.documents.reader import DocumentReader
from holdfast.domain.resources import Document
from holdfast.errors import ConfigurationError, InvalidDocument
from holdfast.loops import run_sync

MEGABYTE = 1024 * 1024


def letter(document: WordDocument) -> None:
    document.add_heading("Letter", 1)
    document.add_paragraph("Dear reader")


def outcome_of(content: bytes, name: str, limits: Limits | None = None) -> Document | str:
    """The document, or the reason for its refusal, where both are valid outcomes."""
    try:
        return asyncio.run(DocumentReader(limits).read(content, None, name, "me"))
    except InvalidDocument as error:
        return str(error)


def shortly(value: object) -> str:
    """Keep file contents out of test ids; generated Word files differ in every run."""
    return "file" if isinstance(value, bytes) else repr(value)[:20]


# --- content, declared type and name ----------------------------------------------------------------------------------

PLAIN = b"Just a few words."
PDF = files.pdf(["hello"])
WORD = files.word(letter)


@pytest.mark.parametrize(
    ("content", "name", "media_type", "kind"),
    [
        (PLAIN, "a", None, FileType.TEXT),
        (PLAIN, "a.txt", "application/octet-stream", FileType.TEXT),
        (PLAIN, "a.md", None, FileType.MARKDOWN),
        (PLAIN, "a.MD", "text/plain; charset=utf-8", FileType.MARKDOWN),
        (PLAIN, "a.txt", "text/markdown", FileType.MARKDOWN),
        (PLAIN, "a.html", "", FileType.HTML),
        (PLAIN, "a.pdf", "text/plain", FileType.TEXT),
        (b"\xef\xbb\xbf\n<!doctype html><p>x", "a", None, FileType.HTML),
        (b"<html><p>x", "page.txt", None, FileType.TEXT),
        (b"PKI and GIF89a and BZh9: what they are", "a", None, FileType.TEXT),
        ("Ein Artikel über %PDF-1.7 und mehr".encode(), "a.md", None, FileType.MARKDOWN),
        (PDF, "a", None, FileType.PDF),
        (PDF, "a.txt", "application/octet-stream", FileType.PDF),
        (b"\r\n " + PDF, "a.pdf", "application/pdf", FileType.PDF),
        (b"HTTP/1.1 200 OK\r\n\r\n" + PDF, "a.pdf", None, FileType.PDF),
        (WORD, "a", None, FileType.DOCX),
    ],
    ids=shortly,
)
def test_a_file_is_what_its_content_says_then_what_was_said_then_its_name(
    read: Read, content: bytes, name: str, media_type: str | None, kind: FileType
) -> None:
    assert read(content, name, media_type).media_type == kind.value


@pytest.mark.parametrize(
    ("content", "name", "media_type", "field", "hint"),
    [
        (PLAIN, "a.pdf", "application/pdf", "media_type", "promises a PDF"),
        (PLAIN, "a.pdf", None, "name", "promises a PDF"),
        (PLAIN, "a.docx", None, "name", "promises a Word file"),
        (PDF, "a.pdf", "text/html", "media_type", "is a PDF"),
        (WORD, "a.pdf", "application/pdf", "media_type", "is a Word file"),
        (PLAIN, "a.png", "image/png", "media_type", "no reader for 'image/png'"),
        (b"{\\rtf1 x}", "a.txt", None, "content", "RTF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "a.doc", None, "content", "save it as DOCX"),
        (gzip.compress(PLAIN, mtime=0), "a.txt", None, "content", "gzip"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), "a", None, "content", "an image"),
        (b"\x00\x01\x02" * 100, "a", None, "content", "UTF-8"),
        (random.Random(4).randbytes(2000), "a.txt", "text/plain", "content", "UTF-8"),
        ("Привет, это письмо".encode("cp1251"), "a.txt", None, "content", "UTF-8"),
        ("text".encode("utf-16-le"), "a.txt", None, "content", "UTF-8"),
        (b"", "a.txt", None, "content", "is empty"),
        (b" \n\t\r\n\x0c ", "a.txt", None, "content", "holds no text"),
        (b"<html><body><script>1</script>", "a", None, "content", "holds no text"),
        (files.word(lambda document: None), "a", None, "content", "holds no text"),
        (files.pdf_of_streams([b"0 0 m 10 10 l S"]), "a", None, "content", "images"),
    ],
    ids=shortly,
)
def test_a_file_that_is_none_is_refused_by_the_field_that_is_wrong(
    refusal: Refusal, content: bytes, name: str, media_type: str | None, field: str, hint: str
) -> None:
    error = refusal(content, name, media_type)
    assert error.field == field
    assert hint in error.problem


def test_limits_on_size_characters_and_chunks_are_named(read: Read, refusal: Refusal) -> None:
    assert "at most 1 MB" in refusal(b"a" * (MEGABYTE + 1), max_bytes=MEGABYTE).problem
    assert read(b"a" * 50, max_characters=50).characters == 50
    for name in ("a.txt", "a.md", "a.html"):
        assert "more than 50 characters" in refusal(b"a" * 51, name, max_characters=50).problem
    assert "more than 2 chunks" in refusal(b"word " * 500, max_chunks=2).problem


# --- broken files -----------------------------------------------------------------------------------------------------


def test_a_truncated_pdf_is_refused_rather_than_half_read(refusal: Refusal) -> None:
    whole = files.pdf(["first"] * 20, ["second"] * 20)
    for share in (0.2, 0.5, 0.9):
        assert "whole file" in refusal(whole[: int(share * len(whole))], "a.pdf").problem


def test_a_pdf_with_a_password_is_refused(refusal: Refusal) -> None:
    assert "password" in refusal(files.locked(PDF, user="geheim", owner="owner")).problem


def test_a_pdf_of_nothing_but_its_first_and_last_words_is_damaged(refusal: Refusal) -> None:
    assert "damaged" in refusal(b"%PDF-1.7\nnonsense\nstartxref\n0\n%%EOF").problem


def test_pages_that_contain_themselves_end(refusal: Refusal) -> None:
    assert refusal(PDF.replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]")).field == "content"


@pytest.mark.parametrize(
    "content",
    [
        WORD[: len(WORD) // 2],
        WORD[:-30],
        files.with_parts(WORD, {"word/document.xml": b"<w:document><unclosed>"}),
        files.with_parts(WORD, {"[Content_Types].xml": b"<nothing/>"}),
        files.with_parts(WORD, {"_rels/.rels": b""}),
        files.archive({"word/a.txt": b"x", "[Content_Types].xml": b"x"}),
    ],
    ids=["half", "without its directory", "broken body", "no types", "no relations", "no document"],
)
def test_a_broken_word_file_is_refused(refusal: Refusal, content: bytes) -> None:
    assert "damaged" in refusal(content).problem


def test_a_word_file_with_a_damaged_part_is_refused(refusal: Refusal) -> None:
    with zipfile.ZipFile(io.BytesIO(WORD)) as archive:
        entry = archive.getinfo("word/document.xml")
    at = entry.header_offset + 60
    assert "damaged" in refusal(WORD[:at] + bytes(200) + WORD[at + 200 :]).problem


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([PDF, WORD]), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=30))
def test_whatever_is_changed_in_a_file_it_is_read_or_refused(whole: bytes, changes: list[tuple[float, int]]) -> None:
    broken = bytearray(whole)
    for place, value in changes:
        broken[int(place * (len(broken) - 1))] = value
    outcome = outcome_of(bytes(broken), "a")
    assert isinstance(outcome, str) or all(chunk.strip() for chunk in outcome.chunks)


# --- bombs ------------------------------------------------------------------------------------------------------------


def test_a_zip_bomb_is_refused_by_its_directory(refusal: Refusal) -> None:
    assert "MB unpacked" in refusal(files.with_parts(WORD, {"word/media/a.bin": bytes(200 * MEGABYTE)})).problem
    for name in ("word/a.xml", "word/a.bin"):
        text = b"<a>" + random.Random(4).randbytes(30 * MEGABYTE).hex().encode() + b"</a>"
        assert "MB of text unpacked" in refusal(files.with_parts(WORD, {name: text}), max_bytes=64 * MEGABYTE).problem
    assert "-fold" in refusal(files.with_parts(WORD, {"word/media/a.bin": bytes(100 * MEGABYTE)})).problem


def test_an_archive_of_very_many_files_is_refused(refusal: Refusal) -> None:
    parts = {f"word/media/{number}": b"" for number in range(MAX_ENTRIES + 1)}
    assert "files; a Word file has at most" in refusal(files.with_parts(WORD, parts)).problem


def test_a_directory_that_lies_about_a_size_does_not_help_a_bomb(refusal: Refusal) -> None:
    """A hundred megabytes of zeros declared as a kilobyte are read for a kilobyte, then refused."""
    content = bytearray(files.with_parts(WORD, {"word/document.xml": bytes(100 * MEGABYTE)}))
    size = (100 * MEGABYTE).to_bytes(4, "little")
    assert content.count(size) == 2
    assert "damaged" in refusal(bytes(content.replace(size, (1024).to_bytes(4, "little")))).problem


def test_archives_in_archives_are_refused_or_never_opened(read: Read, refusal: Refusal) -> None:
    bomb = files.archive({"zeros": bytes(64 * MEGABYTE)})
    assert "archive" in refusal(files.archive({"word.docx": WORD, "bomb.zip": bomb}), "a.docx").problem
    carrying = files.with_parts(WORD, {"word/embeddings/bomb.zip": files.archive({"inner.zip": bomb})})
    assert read(carrying).chunks == ("Letter\n\nDear reader",)


def _with_entities(part: bytes, definitions: str) -> bytes:
    start = part.index(b"<w:document")
    doctype = f"<!DOCTYPE w:document [{definitions}]>".encode()
    return part[:start] + doctype + part[start:].replace(b"Dear reader", b"Dear &e9; reader")


LAUGHS = '<!ENTITY e0 "ha">' + "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("definitions", [LAUGHS, '<!ENTITY e9 SYSTEM "file:///etc/hostname">'], ids=["laughs", "file"])
def test_entities_in_a_word_file_are_refused(refusal: Refusal, definitions: str, encoding: str) -> None:
    def changed(part: bytes) -> bytes:
        text = _with_entities(part, definitions).decode().replace("encoding='UTF-8'", f"encoding='{encoding}'")
        return text.encode(encoding)

    assert "entities" in refusal(files.with_parts(WORD, {"word/document.xml": changed})).problem


def test_a_pdf_stream_that_explodes_is_refused(refusal: Refusal) -> None:
    bomb = files.pdf_bomb(300)
    assert len(bomb) < 2 * MEGABYTE
    assert refusal(bomb, cpu_seconds=10).field == "content"


@pytest.mark.parametrize("tag", ["div", "div/a", "b", "SPAN\n", "table><tr><td", "ul><li", "x-y", "ruby"])
def test_html_a_hundred_thousand_deep_is_refused(refusal: Refusal, tag: str) -> None:
    assert "more than 1,000 deep" in refusal(f"<{tag}>".encode() * 100_000 + b"deep", "a.html").problem


@pytest.mark.parametrize("name", ["a.pdf", "a.docx"])
def test_a_document_that_takes_too_much_memory_is_refused(refusal: Refusal, name: str) -> None:
    content = {
        "a.pdf": files.pdf_bomb(40),
        "a.docx": files.with_parts(WORD, {"word/styles.xml": b"<a>" + b"<b/>" * 1_500_000 + b"</a>"}),
    }[name]
    problem = refusal(content, name, memory_bytes=70 * MEGABYTE).problem
    assert "more than 70 MB to read" in problem or "too large for its reader" in problem


def test_html_that_only_repeats_is_no_nesting(read: Read) -> None:
    assert read(b"<div><b>word</b></div>" * 20_000, "a.html").characters == 80_000


@pytest.mark.parametrize(
    "line", ["> " * 20_000 + "x", "- " * 20_000 + "x", "[" * 50_000, "*a **b " * 20_000], ids=shortly
)
def test_markdown_that_nests_without_end_is_read(read: Read, line: str) -> None:
    assert "".join("".join(read(line.encode(), "a.md").chunks).split()) == "".join(line.split())


def test_a_word_file_nested_deeper_than_its_parser_allows_is_refused(refusal: Refusal) -> None:
    deep = b"<w:sdt><w:sdtContent>" * 5_000 + b"</w:sdtContent></w:sdt>" * 5_000

    def changed(part: bytes) -> bytes:
        return part.replace(b"<w:body>", b"<w:body>" + deep)

    assert refusal(files.with_parts(WORD, {"word/document.xml": changed})).field == "content"


# --- the installation -------------------------------------------------------------------------------------------------


def test_a_missing_library_says_how_to_install_it(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pypdf" else found(name))
    with pytest.raises(ConfigurationError, match=r"pypdf.*pip install .*\[serve\]"):
        read(PDF)
    assert read(PLAIN).chunks


def test_a_system_without_limits_reads_plain_text_alone(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "resource" else found(name))
    with pytest.raises(ConfigurationError, match="Linux"):
        read(PDF)
    assert read(PLAIN).chunks


def test_a_system_without_a_barrier_reads_plain_text_alone_unless_it_is_allowed_more() -> None:
    def chunks(content: bytes, name: str, *, unconfined: bool = False) -> tuple[str, ...]:
        reader = DocumentReader(barriers=Barrier.NONE, unconfined=unconfined)
        return run_sync(reader.read(content, None, name, "me")).chunks

    assert chunks(PLAIN, "a.txt") == chunks(PLAIN, "a.md") == ("Just a few words.",)
    for content in (PDF, WORD, b"<html>hello"):
        with pytest.raises(ConfigurationError, match="this system has none; send plain text, or see `holdfast doctor`"):
            chunks(content, "a")
        assert "hello" in chunks(content, "a", unconfined=True)[0] or content is WORD


def test_a_limit_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="cpu_seconds"):
        Limits(cpu_seconds=0)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-7"])
@pytest.mark.parametrize("name", ["word/document.bin", "customXml/item.jpeg"])
def test_entities_are_found_in_any_part_whatever_its_name_and_encoding(
    refusal: Refusal, name: str, encoding: str
) -> None:
    text = f"<?xml version='1.0' encoding='{encoding}'?><!DOCTYPE a [{LAUGHS}]><a>&e9;</a>"
    encoded = text.encode(encoding)
    if encoding == "utf-7":  # the declaration is ASCII, and what follows is not
        head, rest = text.split("?>", 1)
        encoded = head.encode() + b"?>" + rest.replace("<", "+ADw-").replace("!", "+ACE-").encode()
    problem = refusal(files.with_parts(WORD, {name: encoded})).problem
    assert "entities" in problem
