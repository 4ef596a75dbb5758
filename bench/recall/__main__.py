"""`python -m bench.recall`: is the answer in the first lines of `recall`, and is it silent on other subjects?"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import holdfast
from bench.recall.questions import ANSWERABLE, KINDS, Question, Scenario, load
from bench.recall.stores import build_store

BUDGET_CHARS = 400
ROUNDS = 5
_LIMIT = 8
_LABEL = re.compile(r"\A\d+\. (\[[^\]]*\] )?")


@dataclass(frozen=True, slots=True)
class Answer:
    """The lines that `recall` showed for a question; the place of the answer from 1, None if it is not among them."""

    scenario: str
    query: str
    kind: str
    lines: tuple[str, ...]
    place: int | None
    place_without_floor: int | None
    ratio: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=__doc__)
    parser.add_argument("--embedder", default="static", help="static or onnx:DIRECTORY")
    parser.add_argument("--part", choices=("1", "2", "all"), default="all")
    parser.add_argument("--list", action="store_true", help="list each question that failed, with the lines shown")
    parser.add_argument("--output", type=Path, default=Path("bench/results"))
    options = parser.parse_args(arguments)
    answers: list[Answer] = []
    for scenario in load((1, 2) if options.part == "all" else (int(options.part),)):
        with build_store(scenario, options.embedder) as memory:
            answers += [_ask(memory, scenario, question) for question in scenario.questions]
    if not answers:
        parser.error(f"there are no questions of part {options.part}")
    figures = summarize(answers)
    _print(figures)
    _print_scenarios(answers)
    if options.list:
        _list(answers)
    _write(options.output, options.embedder, options.part, figures, answers)


def _ask(memory: holdfast.Memory, scenario: Scenario, question: Question) -> Answer:
    shown = memory.recall(question.query, subject=scenario.subject, budget_chars=BUDGET_CHARS)
    unfiltered = memory.recall(question.query, subject=scenario.subject, budget_chars=BUDGET_CHARS, min_score=0)
    lines = lines_of(shown) if shown.hits else ()
    return Answer(
        scenario=scenario.id,
        query=question.query,
        kind=question.kind,
        lines=lines,
        place=_place(question, lines),
        place_without_floor=_place(question, lines_of(unfiltered)),
        ratio=_ratio(memory, scenario, question),
    )


def lines_of(shown: holdfast.Recall) -> tuple[str, ...]:
    """Return the lines after the heading, without number and label."""
    return tuple(_LABEL.sub("", line) for line in shown.message.splitlines()[1:])


def _place(question: Question, lines: Sequence[str]) -> int | None:
    if question.kind != ANSWERABLE:
        return None
    return next((place for place, line in enumerate(lines, 1) if question.is_answered_by(line)), None)


def _ratio(memory: holdfast.Memory, scenario: Scenario, question: Question) -> float:
    """Return the time of `recall` over that of the same search, taken in turn."""
    recalls: list[float] = []
    searches: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        memory.search(question.query, subject=scenario.subject, top_k=_LIMIT)
        middle = time.perf_counter()
        memory.recall(question.query, subject=scenario.subject, top_k=_LIMIT, budget_chars=BUDGET_CHARS)
        searches.append(middle - began)
        recalls.append(time.perf_counter() - middle)
    return statistics.median(recalls) / statistics.median(searches)


def summarize(answers: Sequence[Answer]) -> dict[str, float]:
    """Return the shares, of 1, by name; kinds without questions are left out."""
    answerable = [answer for answer in answers if answer.kind == ANSWERABLE]
    figures: dict[str, float] = {}
    if answerable:
        figures["answer in the first two lines"] = _share(answer.place in (1, 2) for answer in answerable)
        figures["answer in any line"] = _share(answer.place is not None for answer in answerable)
        figures["answer in any line, no floor"] = _share(
            answer.place_without_floor is not None for answer in answerable
        )
        figures["answer in the first two lines, no floor"] = _share(
            answer.place_without_floor in (1, 2) for answer in answerable
        )
    for kind in KINDS:
        of_kind = [answer for answer in answers if answer.kind == kind]
        if of_kind:
            figures[f"{kind} questions"] = len(of_kind)
            figures[f"{kind}: recalls nothing"] = _share(not answer.lines for answer in of_kind)
    figures["time of recall over search, p50"] = statistics.median(answer.ratio for answer in answers)
    return figures


def _share(outcomes: Iterable[bool]) -> float:
    return statistics.fmean(outcomes)


def _print(figures: dict[str, float]) -> None:
    for name, value in figures.items():
        print(f"{name:<42} {value:.0f}" if name.endswith("questions") else f"{name:<42} {value:.3f}")


def _print_scenarios(answers: Sequence[Answer]) -> None:
    print("\nscenario        answered in two lines   silent off topic")
    for scenario in dict.fromkeys(answer.scenario for answer in answers):
        own = [answer for answer in answers if answer.scenario == scenario]
        answerable = [answer for answer in own if answer.kind == ANSWERABLE]
        foreign = [answer for answer in own if answer.kind == "off_topic"]
        answered = sum(answer.place in (1, 2) for answer in answerable)
        silent = sum(not answer.lines for answer in foreign)
        print(f"{scenario:<18} {answered:>7} of {len(answerable):<10} {silent:>6} of {len(foreign)}")


def has_failed(answer: Answer) -> bool:
    if answer.kind == ANSWERABLE:
        return answer.place not in (1, 2)
    return answer.kind == "off_topic" and bool(answer.lines)


def _list(answers: Iterable[Answer]) -> None:
    print()
    for answer in answers:
        if has_failed(answer):
            place = f", answer in line {answer.place}" if answer.place else ""
            print(f"{answer.scenario} [{answer.kind}{place}] {answer.query}")
            for line in answer.lines:
                print(f"    {line}")


def _write(output: Path, embedder: str, part: str, figures: dict[str, float], answers: Iterable[Answer]) -> None:
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"recall-{embedder.split(':')[0]}-{part}.json"
    entry = {"embedder": embedder.split(":")[0], "part": part, "figures": figures, "answers": [*map(asdict, answers)]}
    path.write_text(json.dumps(entry, ensure_ascii=False, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
