"""`python -m bench.learning`: precision and recall of the rules on one half of the lines."""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from bench.learning.lines import Line, Outcome, Score, development, held_back, judge, score
from holdfast.domain.ids import MessageId, TurnId
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message, Role
from holdfast.extract.rule_extractor import RuleExtractor

SAID_AT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
SUBJECT = "ana"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.learning", description=__doc__)
    parser.add_argument("--held-back", action="store_true", help="measure the half that is held back from the tuning")
    parser.add_argument("--list", action="store_true", help="list every miss and every wrong memory")
    parser.add_argument("--list-anyway", action="store_true", help="list lines of the held-back half, which spoils it")
    options = parser.parse_args(arguments)
    if options.held_back and options.list and not options.list_anyway:
        parser.error("the held-back lines are not for tuning; add --list-anyway to list them when the tuning is over")
    half = "held back" if options.held_back else "development"
    outcomes = asyncio.run(_learn(held_back() if options.held_back else development()))
    print(f"{half}: {len(outcomes)} lines, {_line(score(outcomes))}")
    _table("topic", outcomes, lambda line: line.topic)
    _table("language", outcomes, lambda line: line.language)
    if options.list or options.list_anyway:
        _list(outcomes)


async def _learn(lines: Iterable[Line]) -> list[Outcome]:
    extractor = RuleExtractor()
    return [
        judge(line, [candidate.text for candidate in await extractor.extract([_message(line)], SUBJECT)])
        for line in lines
    ]


def _message(line: Line) -> Message:
    return Message(
        id=MessageId(f"msg_{line.id}"),
        turn_id=TurnId("turn_0"),
        scope=Scope(subject=SUBJECT),
        position=0,
        text=line.text,
        sender="Ana",
        role=Role.USER,
        said_at=SAID_AT,
        recorded_at=SAID_AT,
        external_id=None,
        source=None,
        metadata={},
    )


def _table(name: str, outcomes: Iterable[Outcome], group: Callable[[Line], str]) -> None:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[group(outcome.line)].append(outcome)
    print(f"\nby {name}")
    for key in sorted(groups):
        print(f"  {key:<12} {_line(score(groups[key]))}")


def _line(counts: Score) -> str:
    return (
        f"precision {_share(counts.precision)} ({counts.right} of {counts.learned} learned), "
        f"recall {_share(counts.recall)} ({counts.matched} of {counts.expected} facts)"
    )


def _share(value: float | None) -> str:
    return "    –" if value is None else f"{value:5.3f}"


def _list(outcomes: Iterable[Outcome]) -> None:
    print()
    for outcome in outcomes:
        if outcome.wrong or outcome.missed:
            print(f"{outcome.line.id} [{outcome.line.topic}, {outcome.line.language}] {outcome.line.text}")
            for text in outcome.wrong:
                print(f"    wrong:  {text}")
            for fact in outcome.missed:
                print(f"    missed: {' & '.join(fact)}")


if __name__ == "__main__":
    main()
