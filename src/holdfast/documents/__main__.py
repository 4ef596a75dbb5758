"""The sandboxed program that parses one document, from standard input to standard output.

    python -P __main__.py <media type> <most characters> <most memory> <most seconds>

It prints JSON: the title and the blocks, or the reason for a refusal. The parent process validates both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

if "holdfast" not in sys.modules:
    # Use the package beside this file, without running its `__init__`.
    package = ModuleType("holdfast")
    package.__path__ = [str(Path(__file__).parent.parent)]
    sys.modules["holdfast"] = package

from holdfast.documents.blocks import ParsedDocument
from holdfast.documents.file_types import FileType
from holdfast.documents.sandbox import OUT_OF_MEMORY, confine
from holdfast.errors import InvalidDocument


def main(media_type: str, max_characters: int, memory_bytes: int, cpu_seconds: int) -> int:
    read = _reader(FileType(media_type))
    confine(memory_bytes, cpu_seconds)
    try:
        answer = _answer(read, max_characters)
    except MemoryError:
        return OUT_OF_MEMORY
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    return 0


def _answer(read: Callable[[bytes, int], ParsedDocument], max_characters: int) -> bytes:
    try:
        found = read(sys.stdin.buffer.read(), max_characters)
    except InvalidDocument as error:
        return json.dumps({"problem": error.problem}).encode()
    except RecursionError:
        return json.dumps({"problem": "is nested too deeply to be read"}).encode()
    blocks = [[block.level, block.text] for block in found.blocks]
    return json.dumps({"title": found.title, "blocks": blocks}, ensure_ascii=False).encode()


def _reader(kind: FileType) -> Callable[[bytes, int], ParsedDocument]:
    """Import the reader with all its dependencies: after `confine`, few files can be opened."""
    name = kind.name.lower()
    read: Callable[..., ParsedDocument] = getattr(import_module(f"holdfast.documents.{name}"), f"read_{name}")
    if kind in (FileType.PDF, FileType.DOCX):
        return read
    return lambda content, most: read(content.decode(), most)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *(int(limit) for limit in sys.argv[2:])))
