"""A failing disk: a flipped byte on a live page is found by `verify`, or the store does not open."""

from __future__ import annotations

import os
import random
import sys
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from sqlite_pages import LivePages

import holdfast
from holdfast.domain.results import UNCHECKED
from holdfast.errors import StoreError
from holdfast.stores.sql import integrity
from holdfast.stores.sqlite.connection import connect
from holdfast.stores.sqlite.dialect import SQLITE
from holdfast.stores.sqlite.errors import translating

CORRUPTIONS = int(os.environ.get("HOLDFAST_CORRUPTIONS", "100"))


def fill(path: Path) -> None:
    chance = random.Random(7)
    with holdfast.open(path, embedder="fake", work=False) as memory:
        for number in range(24):
            text = f"I met {number} friends for tea. " + "Then we talked. " * chance.choice((0, 3, 300))
            message = {"text": text, "id": f"m{number}", "sender": "Ana", "metadata": {"mood": "good"}}
            subject = f"s{number % 2}"
            added = memory.add(message, subject=subject, conversation=f"c{number % 3}", idempotency_key=f"k{number}")
            if number % 6 == 0:
                memory.forget(str(added.message_ids[0]), subject=subject)
        first = memory.remember("Ana likes tea.", subject="s0", source="chat")
        memory.correct(first.id, "Ana likes coffee.", subject="s0")
        memory.add_resource("A long story. " * 200, name="story", subject="s1")
        memory.flush(subject="s0")
        memory.drain()
        assert memory.verify().ok


def is_found(path: Path) -> bool:
    try:
        with translating(str(path)), closing(connect(str(path), 1)) as database:
            checked, findings = integrity.check(database, SQLITE)
    except StoreError:
        return True
    return bool(findings) or UNCHECKED in checked


def test_a_flipped_byte_on_a_live_page_is_found(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    fill(path)
    assert not is_found(path)
    live, chance = LivePages(path), random.Random(19)
    pages = sorted(live.ranges)
    missed = []
    for _ in range(CORRUPTIONS):
        page = chance.choice(pages)
        offset, change = chance.choice(live.bytes_of(page)), chance.randrange(1, 256)
        with path.open("r+b") as file:
            file.seek(offset)
            before = file.read(1)
            file.seek(offset)
            file.write(bytes([before[0] ^ change]))
            file.flush()
            if not is_found(path):
                missed.append((page, offset, change))
            file.seek(offset)
            file.write(before)
    assert missed == []
    assert not is_found(path)
