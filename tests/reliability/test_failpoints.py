"""A process killed at any named failpoint leaves a consistent store."""

from __future__ import annotations

import ast
import asyncio
import random
from pathlib import Path

import pytest

import holdfast
from faults.ledger import Ledger
from faults.places import Place
from faults.writers import killed_at
from faults.zygote import Zygote
from holdfast.failpoints import POINTS

# The passages of each point at which to kill. A store is migrated only once.
PASSAGES = {"migration": (1,)}
USUAL_PASSAGES = (1, 2, 5)

# Rare work that the usual writers never do: its own tests kill it and must name its points.
ELSEWHERE = {
    "backup.publish": "tests/reliability/test_backup_kills.py",
    "copy.chunk": "tests/stores/test_copying.py",
    "outside": "tests/control/test_unknown.py",
    "restore.swap": "tests/reliability/test_backup_kills.py",
}
USUAL = [point for point in POINTS if point.rpartition(".")[0] not in ELSEWHERE]
ROOT = Path(__file__).parents[2]


def reached_by(source: Path) -> list[str]:
    """The failpoints that a module reaches."""
    calls = [node for node in ast.walk(ast.parse(source.read_text("utf-8"))) if isinstance(node, ast.Call)]
    return [
        node.args[0].value  # type: ignore[union-attr, misc]
        for node in calls
        if isinstance(node.func, ast.Name) and node.func.id == "reach"
    ]


def test_every_point_is_listed_and_every_listed_point_is_somewhere() -> None:
    root = Path(holdfast.__file__).parent
    assert {point for source in root.rglob("*.py") for point in reached_by(source)} == set(POINTS)
    assert all(sentence for sentence in POINTS.values())


def test_points_come_in_pairs() -> None:
    """Each place gets a kill before it and one after it."""
    assert {point.removesuffix(".before") for point in POINTS if point.endswith(".before")} == {
        point.removesuffix(".after") for point in POINTS if point.endswith(".after")
    }


@pytest.mark.parametrize("point", [point for point in POINTS if point not in USUAL])
def test_points_of_rare_work_are_named_by_its_tests(point: str) -> None:
    assert f'"{point}"' in (ROOT / ELSEWHERE[point.rpartition(".")[0]]).read_text("utf-8")


@pytest.mark.parametrize("point", USUAL)
def test_a_writer_killed_at_a_point_loses_nothing(place: Place, zygote: Zygote, point: str) -> None:
    chance, ledger = random.Random(point), Ledger()
    for passage in PASSAGES.get(point.partition(".")[0], USUAL_PASSAGES):
        told = killed_at(zygote, place.location, str(passage), chance, point, passage)
        asyncio.run(ledger.check(place, ledger.note(told), chance))
