"""The full pipeline against plain rankings: scores per question, and their difference with its error."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FULL = "full"
USUAL = "0.7 / 0.3"
# Weights of vectors and words in the plain rankings.
PLAIN = {
    "words": (0.0, 1.0),
    "vectors": (1.0, 0.0),
    USUAL: (0.7, 0.3),
    "0.5 / 0.5": (0.5, 0.5),
    "0.3 / 0.7": (0.3, 0.7),
}
HEADINGS = ("data", "questions", FULL, "best plain", "which", USUAL, "recall@10, full − best", "nDCG@10, full − best")


@dataclass(frozen=True, slots=True)
class Quality:
    """One ranking's scores, question by question."""

    recall: tuple[float, ...]
    ndcg: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in percentage points, with the standard error of its mean over the questions."""

    points: float
    error: float

    def __str__(self) -> str:
        return f"{self.points:+.1f} ± {self.error:.1f}".replace("-", "−")


def difference(one: Sequence[float], other: Sequence[float]) -> Difference:
    """The paired difference: a question with equal scores adds nothing, however hard it is."""
    gains = [100 * (mine - theirs) for mine, theirs in zip(one, other, strict=True)]
    middle = mean(gains)
    if len(gains) < 2:
        return Difference(middle, math.inf)
    variance = sum((gain - middle) ** 2 for gain in gains) / (len(gains) - 1)
    return Difference(middle, math.sqrt(variance / len(gains)))


def best_plain(measured: Mapping[str, Quality]) -> str:
    """The best plain ranking by recall. Choosing it on the same questions favours it by some tenths of a point."""
    return max(PLAIN, key=lambda name: (mean(measured[name].recall), mean(measured[name].ndcg)))


def row(name: str, measured: Mapping[str, Quality]) -> str:
    full, best = measured[FULL], best_plain(measured)
    cells = (
        name,
        str(len(full.recall)),
        f"{mean(full.recall):.3f}",
        f"{mean(measured[best].recall):.3f}",
        best,
        f"{mean(measured[USUAL].recall):.3f}",
        str(difference(full.recall, measured[best].recall)),
        str(difference(full.ndcg, measured[best].ndcg)),
    )
    return _line(cells)


def heading() -> str:
    return "\n".join([_line(HEADINGS), _line(["---"] * len(HEADINGS))])


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
