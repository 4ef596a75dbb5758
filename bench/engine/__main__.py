"""`python -m bench.engine`: measure, then print the tables. `--from FILE` prints those of an earlier run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from bench.engine import report
from bench.engine.run import Options, Run
from bench.engine.systems import SYSTEMS

_STORES = ("sqlite", "postgres")


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.engine", description="Measure the engine: bench/README.md.")
    parser.add_argument("--out", type=Path, default=Path("bench/results/engine.json"), help="where the results go")
    parser.add_argument("--from", dest="source", type=Path, help="print the tables of these results instead")
    parser.add_argument("--systems", type=_among(tuple(SYSTEMS)), default=tuple(SYSTEMS), help="such as holdfast,mem0")
    parser.add_argument("--stores", type=_among(_STORES), default=_STORES, help="which grow: sqlite,postgres")
    parser.add_argument("--records", type=int, default=10_000, help="how many each system is given")
    parser.add_argument("--sizes", type=_sizes, default=(10_000, 150_000, 1_000_000), help="how far the stores grow")
    parser.add_argument("--scale", type=int, default=150_000, help="the size at which all searches are measured")
    parser.add_argument("--large", type=int, default=50_000, help="records of the large partition, from there on")
    parser.add_argument("--limit-seconds", type=float, default=30.0, help="for each rate and each series of searches")
    parser.add_argument("--cold-runs", type=int, default=3, help="processes for each cold search of much at once")
    parser.add_argument("--rounds", type=int, default=3, help="how often Holdfast and mem0 are measured, in turns")
    given = vars(parser.parse_args())
    source = given.pop("source")
    if source is None:
        given["sizes"] = tuple(sorted({*given["sizes"], given["scale"]})) if given["sizes"] else ()
    results = json.loads(source.read_text(encoding="utf-8")) if source else Run(Options(**given)).all()
    print(report.written(results))


def _among(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    def names(text: str) -> tuple[str, ...]:
        chosen = tuple(name.strip() for name in text.split(",") if name.strip())
        if unknown := sorted(set(chosen) - set(known)):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        return chosen

    return names


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.replace("_", "").split(",") if part.strip())


if __name__ == "__main__":
    main()
