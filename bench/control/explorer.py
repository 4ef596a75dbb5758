"""Cost of a page of the operation explorer, per filter, in a trail of 100,000 and of 1,000,000 calls.

    python -m bench.control.explorer [--sizes 100000 1000000] [--postgres URL]

The trail is deliberately awkward: one agent makes half of all calls and none of some types, some types are rare or
never occur, failures are few. A page has 50 operations; times are medians of many reads of the store.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from holdfast.domain.access import LOCAL_OPERATOR, Action, authorize
from holdfast.domain.contract import SourceKind, SourceRef
from holdfast.domain.ids import OperationId
from holdfast.domain.operations import Attribution, Operation, OperationFilter, OperationType, Outcome
from holdfast.domain.scope import Scope
from holdfast.domain.times import to_micros
from holdfast.ports import Store, Transaction
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.sqlite import SqliteStore

SPACE = "acme"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BETWEEN = timedelta(seconds=20)
PAGE = 50
CHUNK = 5_000
ROUNDS = 60
BUSIEST = "agent-0"
GRANT = authorize(LOCAL_OPERATOR, Action.READ_OPERATIONS, Scope(space=SPACE))
WRITING = authorize(LOCAL_OPERATOR, Action.MANAGE_BINDINGS, Scope(space=SPACE))


def operations(count: int) -> Iterator[Operation]:
    chance = random.Random(7)
    for number in range(count):
        at = BEGIN + number * BETWEEN
        agent = BUSIEST if number % 2 else f"agent-{chance.randrange(1, 40)}"
        run = number // 20
        action = chance.choice(
            (Action.QUERY, Action.QUERY, Action.SEARCH, Action.LIST)
            if agent == BUSIEST
            else (Action.CAPTURE, Action.ADD, Action.QUERY, Action.REMEMBER, Action.GET)
        )
        if number % (count // 5) == 3:
            action = Action.CORRECT
        kind = chance.choice(list(SourceKind)) if action is Action.CAPTURE else None
        yield Operation(
            id=OperationId(f"op_{to_micros(at) // 1_000:012x}{number:020x}"),
            actor=LOCAL_OPERATOR,
            action=action,
            scope=Scope(
                space=SPACE,
                agent=agent,
                project=f"project-{run % 25}",
                issue=f"issue-{run % (count // 400)}",
                run=f"run-{run}",
            ),
            outcome=Outcome.FAILED if chance.random() < 0.06 else Outcome.SUCCEEDED,
            error_code=None,
            record_count=1,
            started_at=at,
            duration_micros=500,
            attribution=Attribution(
                binding="default" if number % 10 else "mem0",
                provider="local",
                source=None if kind is None else SourceRef(kind, SPACE, run_id=f"run-{run}"),
            ),
        )


def questions(count: int) -> dict[str, OperationFilter]:
    middle = BEGIN + count // 2 * BETWEEN
    early = BEGIN + timedelta(hours=2)
    return {
        "nothing": OperationFilter(),
        "of memory": OperationFilter(of_memory=True),
        "agent, of memory": OperationFilter(agent="agent-7", of_memory=True),
        "agent": OperationFilter(agent="agent-7"),
        "agent, the busiest": OperationFilter(agent=BUSIEST),
        "project": OperationFilter(project="project-3"),
        "issue": OperationFilter(issue="issue-17"),
        "run": OperationFilter(run=f"run-{count // 40}"),
        "binding": OperationFilter(binding="mem0"),
        "source": OperationFilter(source_kind=SourceKind.ISSUE_COMMENT),
        "type": OperationFilter(type=OperationType.CAPTURE),
        "type, rare": OperationFilter(type=OperationType.CORRECT),
        "type, never": OperationFilter(type=OperationType.FORGET),
        "outcome, failed": OperationFilter(outcome=Outcome.FAILED),
        "outcome, succeeded": OperationFilter(outcome=Outcome.SUCCEEDED),
        "outcome, never": OperationFilter(outcome=Outcome.UNKNOWN),
        "until, far back": OperationFilter(until=early),
        "between, far back": OperationFilter(since=BEGIN + timedelta(hours=1), until=early),
        "since, the middle": OperationFilter(since=middle),
        "agent and type": OperationFilter(agent="agent-7", type=OperationType.CAPTURE),
        "agent and type, never together": OperationFilter(agent=BUSIEST, type=OperationType.CAPTURE),
        "agent and outcome": OperationFilter(agent="agent-7", outcome=Outcome.FAILED),
        "agent and outcome, the busiest": OperationFilter(agent=BUSIEST, outcome=Outcome.FAILED),
        "agent and binding": OperationFilter(agent="agent-7", binding="mem0"),
        "project and type": OperationFilter(project="project-3", type=OperationType.CAPTURE),
        "project and type, rare": OperationFilter(project="project-3", type=OperationType.CORRECT),
        "type and outcome": OperationFilter(type=OperationType.CAPTURE, outcome=Outcome.FAILED),
        "agent and time, far back": OperationFilter(agent="agent-7", until=BEGIN + timedelta(days=1)),
        "type and time, far back": OperationFilter(type=OperationType.QUERY, until=early),
    }


async def filled(store: Store, count: int) -> None:
    made = operations(count)
    while chunk := [each for _, each in zip(range(CHUNK), made, strict=False)]:

        def write(transaction: Transaction, chunk: list[Operation] = chunk) -> None:
            for operation in chunk:
                transaction.operations.add(operation)

        await store.write(WRITING, write)


async def page(store: Store, wanted: OperationFilter, before: str | None) -> tuple[float, Sequence[Operation]]:
    """Read a page; return the milliseconds and the operations."""
    begun = time.perf_counter()
    found = await store.read(GRANT, lambda reader: reader.operations.page(wanted, before, PAGE))
    return (time.perf_counter() - begun) * 1_000, found


async def measured(stores: dict[int, Store]) -> dict[str, dict[int, dict[str, float]]]:
    """Per filter and store: the median times of a first page and of the next one, and the number of operations found.

    Stores take turns, so that other load on the machine affects them equally.
    """
    asked = {count: questions(count) for count in stores}
    found: dict[str, dict[int, dict[str, float]]] = {}
    for name in asked[min(stores)]:
        firsts = {count: (await page(store, asked[count][name], None))[1] for count, store in stores.items()}
        times = {count: {"first": list[float](), "next": list[float]()} for count in stores}
        for _ in range(ROUNDS):
            for count, store in stores.items():
                for which, before in (("first", None), ("next", firsts[count][-1].id if firsts[count] else None)):
                    times[count][which].append((await page(store, asked[count][name], before))[0])
        found[name] = {
            count: {**{which: round(median(taken), 3) for which, taken in each.items()}, "found": len(firsts[count])}
            for count, each in times.items()
        }
    return found


async def run(sizes: list[int], url: str | None) -> dict[str, dict[int, dict[str, float]]]:
    stores: dict[int, Store] = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in sizes:
            place = Path(folder) / f"{count}.db"
            stores[count] = SqliteStore(str(place)) if url is None else PostgresStore(f"{url}_{count}")
            await filled(stores[count], count)
        found = await measured(stores)
        for store in stores.values():
            await store.close()
    return found


def shown(results: dict[str, dict[int, dict[str, float]]]) -> Iterator[str]:
    sizes = list(next(iter(results.values())))
    yield f"{'asked for':34} " + " ".join(f"{size:>12,} {'next':>8}" for size in sizes) + "   grows   (ms, median)"
    for name, each in results.items():
        cells = " ".join(f"{each[size]['first']:12.3f} {each[size]['next']:8.3f}" for size in sizes)
        yield f"{name:34} {cells} {each[sizes[-1]]['first'] / each[sizes[0]]['first']:7.2f}"
    middles = [median(each[size]["first"] for each in results.values()) for size in sizes]
    cells = " ".join(f"{middle:12.3f} {'':8}" for middle in middles)
    yield f"{'the median of these':34} {cells} {middles[-1] / middles[0]:7.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--postgres", help="a URL whose last part, ?schema=NAME, gets the size appended")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    results = asyncio.run(run(given.sizes, given.postgres))
    print(json.dumps(results, indent=2) if given.json else "\n".join(shown(results)))


if __name__ == "__main__":
    main()
