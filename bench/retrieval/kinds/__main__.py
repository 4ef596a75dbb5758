"""`python -m bench.retrieval.kinds build` makes the data; `measure` compares the rankings on it."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.retrieval import datasets, scoring
from bench.retrieval.datasets import Dataset
from bench.retrieval.embedders import OnnxModel, StaticModel, Vectors
from bench.retrieval.kinds import chats, comments, compare, documents, functions, shape, talk
from bench.retrieval.kinds.measure import KeptEmbedder, measured
from bench.retrieval.kinds.sources import HALVES


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if options.verb == "build":
        build(options.into, options.data)
    else:
        measure(options.given, options.data, options.embedder, options.only)


def build(into: Path, data: Path) -> None:
    for dataset in _built(into / "sources", data):
        shape.write(dataset, into)
        print(shape.summary(dataset), flush=True)


def measure(given: Path, data: Path, embedder: str, only: Sequence[str]) -> None:
    names = only or sorted(path.stem for path in given.glob("*.json"))
    if not names:
        raise SystemExit(
            f"{given}: there is no data; make it with: python -m bench.retrieval.kinds build --into {given}"
        )
    scorer = scoring.load_scorer(data)
    vectors = None
    if embedder == "onnx":
        vectors = Vectors(OnnxModel(data / "minilm"), given / "cache" / "vectors.db")
    print(f"### {vectors.name if vectors else StaticModel.name}\n\n{compare.heading()}", flush=True)
    for name in names:
        print(name, file=sys.stderr, flush=True)
        dataset = datasets.load(given, name)
        if vectors:
            vectors.prepare(dataset.texts())
            vectors.prepare(dataset.queries())
        chosen = KeptEmbedder(vectors) if vectors else embedder
        print(compare.row(name, measured(dataset, chosen, scorer)), flush=True)


def _built(cache: Path, data: Path) -> Iterator[Dataset]:
    yield from talk.all_sets(data)
    for letter, half in HALVES.items():
        yield documents.sections(f"sections-{letter}", half.manuals, cache, whole=False)
        yield documents.sections(f"manual-{letter}", half.manuals, cache, whole=True)
        yield documents.passages(f"passages-{letter}", half.manuals, cache)
        yield functions.dataset(f"python-{letter}", half.python, cache)
        yield comments.dataset(f"code-{letter}", half.code, cache)
        yield chats.dataset(f"chats-{letter}", half.manuals, half.python, cache)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    default_data = Path(os.environ.get("HOLDFAST_EVAL", "../shared/eval"))
    parser = argparse.ArgumentParser("python -m bench.retrieval.kinds", description="Other kinds: bench/README.md.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    building = verbs.add_parser("build", help="fetch the packages and make the data of them")
    building.add_argument("--into", type=Path, required=True, help="directory that gets the data")
    measuring = verbs.add_parser("measure", help="compare the full pipeline with plain rankings")
    measuring.add_argument("--from", dest="given", type=Path, required=True, help="directory that was built into")
    measuring.add_argument("--embedder", choices=("static", "onnx"), default="static")
    measuring.add_argument("--only", type=_names, default=(), help="such as sections-a,code-a; default: all there is")
    for verb in (building, measuring):
        verb.add_argument("--data", type=Path, default=default_data, help="directory of the evaluation data")
    return parser.parse_args(arguments)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


if __name__ == "__main__":
    main()
