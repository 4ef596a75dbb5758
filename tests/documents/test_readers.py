"""Each reader on small real files: it returns the text that a person would read, in order, and nothing else."""

from __future__ import annotations

import asyncio
import re
import threading

import pytest
from docx.document import Document as WordDocument
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from tests.documents import files
from tests.documents.conftest import Read

from holdfast.documents.file_types import FileType
from holdfast.documents.reader import DocumentReader
from holdfast.domain.resources import Document
from holdfast.errors import DocumentsBusy
from holdfast.loops import run_sync


def text_of(document: object) -> str:
    return "\n\n".join(document.chunks)  # type: ignore[attr-defined]


# --- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "Olá, señor Müller…".encode(),
        b"\xef\xbb\xbf" + "Olá, señor Müller…".encode(),
        "Olá, señor Müller…".encode("utf-16"),
        b"\xfe\xff" + "Olá, señor Müller…".encode("utf-16-be"),
        "Olá, señor Müller…".encode("utf-32"),
        "Olá, señor Müller…".encode("cp1252"),
    ],
    ids=["utf-8", "utf-8 with a mark", "utf-16", "utf-16 big-endian", "utf-32", "windows"],
)
def test_text_is_read_in_any_common_encoding(read: Read, content: bytes) -> None:
    document = read(content, "note.txt")
    assert document.chunks == ("Olá, señor Müller…",)
    assert (document.media_type, document.title, document.characters) == ("text/plain", None, 18)


def test_a_declared_charset_is_believed(read: Read) -> None:
    russian = "Привет, мир. Это письмо."
    assert read(russian.encode("koi8-r"), "a.txt", "text/plain; charset=koi8-r").chunks == (russian,)
    page = f'<html><meta charset="windows-1251"><p>{russian}</p>'.encode("cp1251")
    assert read(page, "a.html").chunks == (russian,)


def test_line_ends_and_page_breaks_of_all_systems_are_read(read: Read) -> None:
    assert read(b"one\r\ntwo\r\rthree\x0cfour \x07").chunks == ("one\ntwo\n\nthree\nfour",)


def test_json_and_other_texts_are_kept_as_text(read: Read) -> None:
    assert read(b'{"a": 1}', "a.json", "application/json").media_type == "text/plain"
    assert read(b"a,b\n1,2\n", "a.csv", "text/csv").chunks == ("a,b\n1,2",)


# --- markdown ---------------------------------------------------------------------------------------------------------

MARKDOWN = b"""---
title: "The handbook"
---

# First steps

Install it, *then* [run it][run].

```sh
# not a heading
holdfast serve
```

## Tables

| a | b |
|---|---|
| 1 | 2 |

<!-- nobody sees this -->

Setext
------

1. one
2. two

[run]: https://example.org/run
"""


def test_markdown_keeps_what_was_written_and_knows_its_headings(read: Read) -> None:
    document = read(MARKDOWN, "handbook.md", "text/plain")
    text = text_of(document)
    assert (document.media_type, document.title) == ("text/markdown", "The handbook")
    for piece in (
        "Install it, *then* [run it][run].",
        "# not a heading\nholdfast serve",
        "| 1 | 2 |",
        "1. one\n2. two",
    ):
        assert piece in text
    assert "[run]: https://example.org/run" in text
    assert "nobody sees this" not in text
    assert text.index("First steps") < text.index("Tables") < text.index("Setext") < text.index("1. one")
    assert "------" not in text


def test_the_first_heading_titles_markdown_without_front_matter(read: Read) -> None:
    assert read(b"Intro\n\n# About *it*\n\nMore", "a.md").title == "About *it*"


# --- HTML -------------------------------------------------------------------------------------------------------------

PAGE = """<!DOCTYPE html><html><head><title>  The
 page </title><style>.a{color:red}</style><script>steal()</script></head><body>
<h1>Garden</h1><p>Plant <b>toma</b>toes<br>in May&nbsp;&amp; June.</p>
<ul><li>one<li>two</ul><table><tr><th>when</th><th>what</th></tr><tr><td>May<td>beans</table>
<pre>
  x = 1
    y</pre>
<p hidden>no 1</p><div style="DISPLAY: none"><p>no 2<p>no 3</div><span aria-hidden="true">no 4</span>
<template><p>no 5</p></template><noscript>no 6</noscript><!-- no 7 --><svg><text>no 8</text></svg>
<textarea>typed</textarea><p>End</body></html>"""


def test_html_gives_what_a_reader_of_the_page_sees(read: Read) -> None:
    document = read(PAGE.encode())
    text = text_of(document)
    assert (document.media_type, document.title) == ("text/html", "The page")
    for piece in (
        "Garden",
        "Plant tomatoes\nin May & June.",
        "one\n\ntwo",
        "when | what",
        "May | beans",
        "x = 1\n    y",
    ):
        assert piece in text
    assert text.endswith("typed\n\nEnd")
    assert "no " not in text
    assert "steal" not in text
    assert "color" not in text


def test_html_in_pieces_is_read_too(read: Read) -> None:
    assert read(b"just <b>bold</b> & unclosed <i>text", "a.htm").chunks == ("just bold & unclosed text",)


# --- PDF --------------------------------------------------------------------------------------------------------------


def test_pdf_gives_the_text_of_its_pages_in_order(read: Read) -> None:
    document = read(files.pdf(["First page", "second line"], ["Über uns"], title="Report"), "r.pdf", "application/pdf")
    assert (document.media_type, document.title) == ("application/pdf", "Report")
    assert text_of(document).split() == ["First", "page", "second", "line", "Über", "uns"]


def test_a_word_that_was_divided_at_the_end_of_a_line_is_one_word_again(read: Read) -> None:
    assert "information" in text_of(
        read(files.pdf(["We sent the infor-", "mation to Anna-", "Maria in 2019-", "2020."]))
    )
    assert "Anna-\nMaria" in text_of(read(files.pdf(["We sent it to Anna-", "Maria."])))


def test_a_pdf_that_only_forbids_printing_is_read(read: Read) -> None:
    assert "hello" in text_of(read(files.locked(files.pdf(["hello"]), user="", owner="secret")))


@pytest.mark.parametrize(("cmap", "codec"), [("GBK-EUC-H", "gbk"), ("90ms-RKSJ-H", "cp932"), ("ETen-B5-H", "cp950")])
def test_a_pdf_in_an_encoding_whose_codec_is_rarely_loaded_is_read(read: Read, cmap: str, codec: str) -> None:
    """No file can be opened while a document is read, so the codec must be there before."""
    shown = "\u4e2d\u6587".encode(codec).hex().encode()
    content = files.pdf_of_streams([b"BT /F1 12 Tf 72 720 Td <" + shown + b"> Tj ET"])
    font = f"<< /Type /Font /Subtype /Type0 /BaseFont /A /Encoding /{cmap} >>".encode()
    old = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    assert text_of(read(content.replace(old, font.ljust(len(old))))).strip() == "\u4e2d\u6587"


# --- DOCX -------------------------------------------------------------------------------------------------------------


def _handbook(document: WordDocument) -> None:
    document.core_properties.title = "Handbook"
    document.add_heading("Leave", 1)
    paragraph = document.add_paragraph("Ask ")
    paragraph.add_run("early").bold = True
    inserted = (
        f'<w:ins {nsdecls("w")} w:id="1" w:author="a"><w:r><w:t xml:space="preserve"> and often</w:t></w:r></w:ins>'
    )
    paragraph._p.append(parse_xml(inserted))
    deleted = f'<w:del {nsdecls("w")} w:id="2" w:author="a"><w:r><w:delText>no 1</w:delText></w:r></w:del>'
    paragraph._p.append(parse_xml(deleted))
    document.add_paragraph().add_run("no 2").font.hidden = True
    table = document.add_table(2, 2)
    for place, text in enumerate(["days", "who", "30", "all"]):
        table.cell(place // 2, place % 2).text = text
    table.cell(1, 1).add_table(1, 1).cell(0, 0).text = "inner"
    form = f"<w:sdt {nsdecls('w')}><w:sdtContent><w:p><w:r><w:t>In a form</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    document.element.body.insert(-1, parse_xml(form))
    document.sections[0].header.paragraphs[0].text = "no 3"
    document.add_paragraph("End")


def test_docx_gives_its_body_with_tables_forms_and_reviewed_text(read: Read) -> None:
    document = read(files.word(_handbook), "handbook.docx", FileType.DOCX.value)
    assert (document.media_type, document.title) == (FileType.DOCX.value, "Handbook")
    expected = ["Leave", "Ask early and often", "days | who", "30 | all inner", "In a form", "End"]
    assert text_of(document).split("\n\n") == expected


def test_a_word_file_without_styles_is_read(read: Read) -> None:
    """The library would read its own styles from a file, and no file can be opened."""
    content = files.word(lambda document: document.add_paragraph("plain") and None)
    relation = re.compile(rb'<Relationship [^>]*relationships/styles"[^>]*/>')
    without = files.with_parts(content, {"word/_rels/document.xml.rels": lambda part: relation.sub(b"", part)})
    assert text_of(read(without)) == "plain"


BOX = """<w:r {} xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"
xmlns:v="urn:schemas-microsoft-com:vml"><mc:AlternateContent><mc:Choice Requires="wps">
<w:drawing><w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p>
</w:txbxContent></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox><w:txbxContent><w:p>
<w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>"""


def test_a_text_box_is_read_once(read: Read) -> None:
    def fill(document: WordDocument) -> None:
        document.add_paragraph("Beside")._p.append(parse_xml(BOX.format(nsdecls("w"))))

    assert text_of(read(files.word(fill))) == "Beside\n\nIn a box"


# --- all readers ------------------------------------------------------------------------------------------------------


def test_several_documents_are_read_at_once_and_without_a_loop() -> None:
    reader = DocumentReader()

    async def many() -> list[str]:
        pages = [f"<html><p>page {number}</p></html>".encode() for number in range(5)]
        documents = await asyncio.gather(*(reader.read(page, None, "p", "me") for page in pages))
        return [document.chunks[0] for document in documents]

    assert asyncio.run(many()) == [f"page {number}" for number in range(5)]
    assert run_sync(reader.read(b"<html>alone", None, "p", "me")).chunks == ("alone",)


class Held(DocumentReader):
    """A reader that blocks until `free` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()
        self.begun = threading.Semaphore(0)

    def _read(self, kind: FileType, content: bytes, media_type: str | None) -> Document:
        self.begun.release()
        assert self.free.wait(60)
        return super()._read(kind, content, media_type)


def test_more_documents_than_a_callers_share_are_refused_at_once_and_keep_nobody_out() -> None:
    reader = Held()
    page = b"<html>page"

    async def crowd() -> None:
        try:
            mine = [asyncio.create_task(reader.read(page, None, "p", "me")) for _ in range(9)]
            other = asyncio.create_task(reader.read(page, None, "p", "other"))
            note = asyncio.create_task(reader.read(b"note", None, "p", "me"))
            for _ in range(3):  # one of each caller's pages, and the note, which need not wait for them
                assert await asyncio.to_thread(reader.begun.acquire, timeout=60)
            with pytest.raises(DocumentsBusy, match="trying again is safe"):
                await reader.read(page, None, "p", "me")
            # A cancelled waiter frees its place in the queue.
            mine[8].cancel()
            await asyncio.wait([mine[8]])
            mine[8] = asyncio.create_task(reader.read(b"<html>late", None, "p", "me"))
            await asyncio.sleep(0)
        finally:
            reader.free.set()
        documents = await asyncio.gather(*mine, other, note)
        assert [document.chunks for document in documents] == [("page",)] * 8 + [("late",), ("page",), ("note",)]

    asyncio.run(crowd())
