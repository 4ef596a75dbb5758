"""Unique texts, and a search for their bytes in files."""

from __future__ import annotations

import random
import string
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PIECE = 8
SIZES = (1, 12, 60, 300, 900, 1_500, 4_000, 4_100, 9_000, 40_000, 200_000)
# Enough characters that a run of eight hardly ever repeats by chance.
LETTERS = string.ascii_letters + string.digits


def bytes_of(folder: Path) -> bytes:
    return b"\n\n".join(path.read_bytes() for path in sorted(folder.iterdir()))


def pieces_of(raw: bytes) -> NDArray[np.uint64]:
    """Every run of eight bytes, as a number."""
    if len(raw) < PIECE:
        return np.empty(0, np.uint64)
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(raw, np.uint8), PIECE)
    return np.unique(np.ascontiguousarray(windows).view(np.uint64))


def among(values: NDArray[np.uint64], ordered: NDArray[np.uint64]) -> NDArray[np.bool_]:
    at = np.searchsorted(ordered, values)
    return (at < len(ordered)) & (np.take(np.append(ordered, 0), at) == values)


def assert_gone(folder: Path, values: Iterable[str], kept: Iterable[str] = ()) -> None:
    """Assert that no file of the folder contains an eight-character piece of `values`, except pieces of `kept`."""
    there = pieces_of(bytes_of(folder))
    excused = pieces_of("\n".join(kept).encode())
    for value in values:
        own = pieces_of(value.encode())
        left = own[among(own, there) & ~among(own, excused)]
        assert not len(left), f"{len(left)} pieces of {value[:40]!r} are left, such as {left[:1].tobytes()!r}"


class Canaries:
    """Makes texts of which an eight-character piece hardly ever occurs elsewhere."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def make(self, size: int = 24) -> str:
        return "".join(self._chance.choices(LETTERS, k=size))

    def text(self) -> str:
        size = self._chance.choice(SIZES[:-2] if self._chance.random() < 0.97 else SIZES)
        # Long texts repeat themselves, so that they are fast to make and to search for; they are still unique.
        unit = self.make(min(size, 997))
        return (unit * (size // len(unit) + 1))[:size]
