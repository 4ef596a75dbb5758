"""Output of results: one markdown table per dataset, one JSON file per embedder, one run file per system."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.retrieval.measure import Timings
from bench.retrieval.scoring import BUDGET_CHARS, Ranked, Scores

_HEADINGS = (
    "system",
    "embedder",
    "recall@5",
    "recall@10",
    "recall@20",
    "nDCG@10",
    "MRR",
    f"recall in {BUDGET_CHARS:,} chars",
    "session recall@10",
    "add/s",
    "add/s with embedding",
    "search p50 / p95 ms",
    "with embedding p50 / p95 ms",
)


@dataclass(frozen=True, slots=True)
class Result:
    dataset: str
    system: str
    embedder: str
    scores: Scores
    timings: Timings


def table(results: Sequence[Result]) -> str:
    """The results of one dataset, in the order they were measured."""
    first = results[0]
    return "\n".join(
        [
            f"### {first.dataset}: {first.scores.questions} counted questions",
            "",
            _row(_HEADINGS),
            _row(["---"] * len(_HEADINGS)),
            *(_row(_cells(result)) for result in results),
            "",
        ]
    )


def write_run(output: Path, name: str, ranked: Ranked) -> None:
    """Write the run in the format that `score.py` reads."""
    ids = {qid: [hit.id for hit in hits] for qid, hits in ranked.items()}
    _write(output / f"{name}.run.json", ids)


def write_results(output: Path, name: str, results: Sequence[Result]) -> None:
    _write(output / f"{name}.json", [asdict(result) for result in results])


def _cells(result: Result) -> list[str]:
    scores, timings = result.scores, result.timings
    quality = (
        scores.turn["recall@5"],
        scores.turn["recall@10"],
        scores.turn["recall@20"],
        scores.turn["ndcg@10"],
        scores.turn["mrr"],
        scores.recall_in_budget,
        scores.session["recall@10"],
    )
    return [
        result.system,
        result.embedder,
        *(f"{value:.3f}" for value in quality),
        _number(timings.adds_per_second, ",.0f"),
        _number(timings.adds_per_second_with_embedding, ",.0f"),
        f"{_number(timings.search_p50_ms, '.1f')} / {_number(timings.search_p95_ms, '.1f')}",
        f"{timings.search_p50_ms_with_embedding:.1f} / {timings.search_p95_ms_with_embedding:.1f}",
    ]


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
