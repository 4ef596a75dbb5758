"""Small real files, generated at test time: by the libraries that read them, or byte by byte."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence

import docx
from docx.document import Document
from pypdf import PdfReader, PdfWriter


def pdf(*pages: Sequence[str], title: str | None = None) -> bytes:
    """A PDF; each string of a page is one line."""
    streams = []
    for lines in pages:
        shown = b" T* ".join(b"(" + line.encode("cp1252") + b") Tj" for line in lines)
        streams.append(b"BT /F1 12 Tf 14 TL 72 720 Td " + shown + b" ET")
    return pdf_of_streams(streams, title=title)


def pdf_of_streams(streams: Sequence[bytes], *, title: str | None = None, filtered: bool = False) -> bytes:
    """A PDF with these content streams, one per page."""
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for index, stream in enumerate(streams):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * index} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        kind = b" /Filter /FlateDecode" if filtered else b""
        length = str(len(stream)).encode()
        objects.append(b"<< /Length " + length + kind + b" >>\nstream\n" + stream + b"\nendstream")
    info = b""
    if title is not None:
        objects.append(b"<< /Title (" + title.encode("cp1252") + b") >>")
        info = f" /Info {len(objects)} 0 R".encode()
    file = io.BytesIO()
    file.write(b"%PDF-1.7\n")
    places = []
    for number, made in enumerate(objects, 1):
        places.append(file.tell())
        file.write(f"{number} 0 obj\n".encode() + made + b"\nendobj\n")
    table = file.tell()
    file.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    file.write(b"".join(f"{place:010} 00000 n \n".encode() for place in places))
    file.write(f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R".encode() + info + b" >>\n")
    file.write(f"startxref\n{table}\n%%EOF\n".encode())
    return file.getvalue()


def locked(content: bytes, *, user: str, owner: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(content)))
    writer.encrypt(user, owner, algorithm="RC4-128")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def pdf_bomb(megabytes: int) -> bytes:
    """A page with a content stream of a few kilobytes that unpacks to this many megabytes."""
    packer = zlib.compressobj(9)
    block = b"(word) Tj " * (1024 * 1024 // 10)
    packed = b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()
    return pdf_of_streams([packed], filtered=True)


def word(fill: Callable[[Document], None]) -> bytes:
    document = docx.Document()
    fill(document)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def with_parts(content: bytes, parts: Mapping[str, bytes | Callable[[bytes], bytes]]) -> bytes:
    """The archive with these parts added, replaced, or computed from their old content."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            part = parts.get(entry.filename, old.read(entry))
            new.writestr(entry.filename, part(old.read(entry)) if callable(part) else part)
        for name in sorted(parts.keys() - set(old.namelist())):
            part = parts[name]
            assert isinstance(part, bytes)
            new.writestr(name, part)
    return file.getvalue()


def archive(parts: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name, part in parts.items():
            new.writestr(name, part)
    return file.getvalue()
