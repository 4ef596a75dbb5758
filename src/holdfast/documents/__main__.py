"""The sandboxed program that parses one document, from standard input to standard output.

    python -P __main__.py <media type> <most characters> <most chunks> <most memory> <most seconds> <barriers>
        [declared encoding...]

It prints lines of JSON: the title and the number of characters, then each chunk; or the reason for a refusal. The
parent process validates them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

if "holdfast" not in sys.modules:
    # Use the package beside this file, without running its `__init__`.
    package = ModuleType("holdfast")
    package.__path__ = [str(Path(__file__).parent.parent)]
    sys.modules["holdfast"] = package

from holdfast.documents.blocks import ParsedDocument
from holdfast.documents.chunking import cut_document
from holdfast.documents.decoding import decode_text, load_codecs
from holdfast.documents.file_types import FileType
from holdfast.documents.kernel import Barrier
from holdfast.documents.sandbox import NOT_CONFINED, OUT_OF_MEMORY, confine, yield_to_others
from holdfast.errors import InvalidDocument

# Readers import these late, when no file can be opened any more.
_IMPORTED_LATE = {
    FileType.PDF: (
        *(f"encodings.{name}" for name in ("charmap", "cp932", "cp949", "cp950", "gbk", "latin_1", "unicode_escape")),
        *(f"encodings.utf_16{end}" for end in ("", "_be", "_le")),
        *(
            f"pypdf.{name}"
            for name in ("annotations", "filters", "xmp", "_codecs._codecs", "_codecs.core_font_metrics")
        ),
        "locale",
    ),
    FileType.DOCX: ("encodings.cp437",),
}


def main(media_type: str, *given: str) -> int:
    yield_to_others()
    max_characters, max_chunks, memory_bytes, cpu_seconds, barriers = map(int, given[:5])
    read = _reader(FileType(media_type), given[5:])
    try:
        confine(memory_bytes, cpu_seconds, Barrier(barriers))
    except OSError:
        return NOT_CONFINED
    try:
        answer = _answer(read, max_characters, max_chunks)
    except MemoryError:
        return OUT_OF_MEMORY
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    return 0


def _answer(read: Callable[[bytes, int], ParsedDocument], max_characters: int, max_chunks: int) -> bytes:
    try:
        found = read(sys.stdin.buffer.read(), max_characters)
        chunks = cut_document(found.blocks, max_chunks)
    except InvalidDocument as error:
        return json.dumps({"problem": error.problem}).encode()
    except RecursionError:
        return json.dumps({"problem": "is nested too deeply to be read"}).encode()
    head = {"title": found.title, "characters": found.characters}
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in (head, *chunks)).encode()


def _reader(kind: FileType, encodings: Sequence[str]) -> Callable[[bytes, int], ParsedDocument]:
    """Import the reader with all its dependencies: after `confine`, no file can be opened."""
    name = kind.name.lower()
    read: Callable[..., ParsedDocument] = getattr(import_module(f"holdfast.documents.{name}"), f"read_{name}")
    if kind is FileType.HTML:
        load_codecs(encodings)
        return lambda content, most: read(decode_text(content, encodings), most)
    for module in _IMPORTED_LATE.get(kind, ()):
        with suppress(ImportError):  # of another version of the library
            import_module(module)
    return read


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
