"""Scores of one run, computed by the data directory's own `score.py`.

Iterates over the questions; that script's functions compute every figure, so its numbers and ours agree by
construction. Adds recall within a budget of characters, which is fair to systems that return long passages.
"""

import importlib.util
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from bench.retrieval.datasets import Dataset, Question, Scope
from bench.retrieval.systems.protocol import Hit

BUDGET_CHARS = 4_000
_TURN_KEYS = ("recall@5", "recall@10", "recall@20", "hit@10", "all@10", "mrr", "ndcg@10")
_SESSION_KEYS = ("recall@10", "all@5")

Row = dict[str, float]
Ranked = dict[str, list[Hit]]


class Scorer(Protocol):
    """The part of `score.py` that we use."""

    def one(self, ranked: Iterable[str], gold: Iterable[str]) -> Row: ...

    def mean(self, rows: Sequence[Row], key: str) -> float: ...

    def unique(self, ids: Iterable[str]) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Scores:
    questions: int
    answered: int
    turn: Row
    session: Row
    recall_in_budget: float
    recall_at_10_by_category: Row


def load_scorer(data: Path) -> Scorer:
    spec = importlib.util.spec_from_file_location("holdfast_eval_score", data / "score.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{data}: there is no score.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Scorer, module)


def score(scorer: Scorer, dataset: Dataset, ranked: Ranked) -> Scores:
    turns: list[Row] = []
    sessions: list[Row] = []
    budgets: list[Row] = []
    by_category: defaultdict[str, list[Row]] = defaultdict(list)
    counted = [(scope, question) for scope in dataset.scopes for question in scope.questions if question.counted]
    for scope, question in counted:
        hits = ranked.get(question.qid, [])
        row = scorer.one([hit.id for hit in hits], question.gold)
        turns.append(row)
        by_category[question.category].append(row)
        sessions.append(_session_row(scorer, scope, question, hits))
        budgets.append(scorer.one([hit.id for hit in _within_budget(hits)], question.gold))
    return Scores(
        questions=len(turns),
        answered=sum(1 for _, question in counted if ranked.get(question.qid)),
        turn={key: scorer.mean(turns, key) for key in _TURN_KEYS},
        session={key: scorer.mean(sessions, key) for key in _SESSION_KEYS},
        # At most 20 results are requested, so recall@20 of those that fit is the recall of all that fit.
        recall_in_budget=scorer.mean(budgets, "recall@20"),
        recall_at_10_by_category={
            category: scorer.mean(rows, "recall@10") for category, rows in sorted(by_category.items())
        },
    )


def _session_row(scorer: Scorer, scope: Scope, question: Question, hits: Sequence[Hit]) -> Row:
    session = {record.id: record.session_id for record in scope.records}
    ranked = scorer.unique(session.get(hit.id, hit.id) for hit in hits)
    return scorer.one(ranked, {session[gold] for gold in question.gold})


def _within_budget(hits: Sequence[Hit]) -> list[Hit]:
    """The best results whose texts together fit the budget; the first that does not fit ends the list."""
    kept: list[Hit] = []
    used_chars = 0
    for hit in hits:
        used_chars += len(hit.text)
        if used_chars > BUDGET_CHARS:
            break
        kept.append(hit)
    return kept
