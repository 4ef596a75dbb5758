"""`python -m bench.calibration`: fit the calibrations of scores, and measure them. See bench/README.md."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.calibration.fitting import Figures, fit, fit_in_turn
from bench.calibration.observations import WHOLE, Observation, observe
from bench.calibration.sample import ranking_version, sample_strengths
from holdfast.domain.calibration import Calibration
from holdfast.ports import Embedder
from holdfast.search import calibrations
from holdfast.search.embedders.onnx import OnnxEmbedder
from holdfast.search.embedders.static import StaticEmbedder

_BY_WORDS = ("words", "own", "bm25", "lead", "size")
# The signals of each calibration. Cosines of an unknown embedder are of an unknown scale.
_USED = {
    "static/hybrid": ("meaning", "words", "own", "lead", "size"),
    "static/vector": ("meaning", "lead", "span"),
    "minilm/hybrid": ("meaning", "words", "own", "lead", "span"),
    "minilm/vector": ("meaning", "lead", "span"),
    "unknown/hybrid": _BY_WORDS,
    "unknown/vector": ("lead",),
    "words": _BY_WORDS,
}
# Of the questions that a whole conversation answers, so many fall below the floor. Vectors that are averages tell less.
_LOST = {"static": 0.005, "minilm": 0.02, "unknown": 0.01, "words": 0.01}
_TEMPLATE = '''"""Numbers of the calibrations, written by `python -m bench.calibration --write`. Do not edit."""

from holdfast.domain.calibration import Calibration

# The version of the ranking that the numbers were fitted to, and the strengths of a small sample that it names.
RANKING = "{version}"
STRENGTHS: tuple[float, ...] = (
{strengths}
)
CALIBRATIONS = (
{calibrations}
)
'''


def main(arguments: Sequence[str] | None = None) -> None:
    default_data = Path(os.environ.get("HOLDFAST_EVAL", "../shared/eval"))
    parser = argparse.ArgumentParser("python -m bench.calibration", description="Fit and measure what scores mean.")
    parser.add_argument("--data", type=Path, default=default_data, help="directory of the evaluation data")
    parser.add_argument("--write", action="store_true", help="write the fitted numbers into the package")
    parser.add_argument("--output", type=Path, default=Path("bench/results"))
    options = parser.parse_args(arguments)
    embedders: dict[str, Embedder] = {"static": StaticEmbedder(), "minilm": OnnxEmbedder(options.data / "minilm")}
    seen = {name: observe(options.data, embedder) for name, embedder in embedders.items()}
    figures = {}
    for name, used in _USED.items():
        figures[name] = fit_in_turn(name, _observations(seen, name), used, _lost(name))
        _print(name, figures[name])
    options.output.mkdir(parents=True, exist_ok=True)
    content = {name: {kind: asdict(each) for kind, each in found.items()} for name, found in figures.items()}
    (options.output / "calibration.json").write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    if options.write:
        _write([fit(name, _observations(seen, name), used, _lost(name)) for name, used in _USED.items()])


def _lost(name: str) -> float:
    return _LOST[name.partition("/")[0]]


def _observations(seen: dict[str, list[Observation]], name: str) -> list[Observation]:
    """Return those of the embedder and method of a calibration; of both embedders for an unknown one."""
    kind, _, method = name.partition("/")
    return [
        each
        for embedder, own in seen.items()
        if kind in (embedder, "unknown") or (kind == "words" and embedder == "static")
        for each in own
        if each.method == (method or "keyword")
    ]


def _print(name: str, figures: dict[str, Figures]) -> None:
    print(f"\n{name:<22} searches  AUROC   calibration error of: answer  best   hits    lost   silent", flush=True)
    for kind, each in figures.items():
        errors = f"{each.answer_error:>25.3f} {each.best_error:>7.3f} {each.hits_error:>6.3f}"
        print(f"  {kind:<20} {each.searches:>8} {each.auroc:>6.3f} {errors} {each.lost:>7.3f} {each.silent:>7.3f}")
    assert WHOLE in figures


def _write(fitted: Iterable[Calibration]) -> None:
    strengths = sample_strengths()
    rows = [", ".join(map(str, strengths[at : at + 12])) for at in range(0, len(strengths), 12)]
    text = _TEMPLATE.format(
        version=ranking_version(strengths),
        strengths="\n".join(f"    {row}," for row in rows),
        calibrations="\n".join(
            f'    Calibration(\n        "{each.name}",\n        {each.answer},\n        {each.place},\n'
            f"        {each.floor},\n        {each.lone_lead},\n    ),"
            for each in fitted
        ),
    )
    path = Path(calibrations.__file__)
    path.write_text(text, "utf-8")
    print(f"\nwrote {path}")


if __name__ == "__main__":
    main()
