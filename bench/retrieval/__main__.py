"""`python -m bench.retrieval`: the command line, and the loop over datasets and systems."""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.retrieval import datasets, measure, report, scoring
from bench.retrieval.embedders import Model, OnnxModel, StaticModel, Vectors
from bench.retrieval.systems import DEFAULT, SYSTEMS
from bench.retrieval.systems.protocol import Setup

_DATASETS = ("locomo", "memdaily")


@dataclass(frozen=True, slots=True)
class Options:
    data: Path
    systems: tuple[str, ...]
    datasets: tuple[str, ...]
    embedder: str
    output: Path


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    scorer = scoring.load_scorer(options.data)
    model: Model = StaticModel() if options.embedder == "static" else OnnxModel(options.data / "minilm")
    vectors = Vectors(model, options.output / "cache" / "vectors.db")
    results = [
        result
        for name in options.datasets
        for result in _measured(options, scorer, model, vectors, datasets.load(options.data, name))
    ]
    vectors.close()
    report.write_results(options.output, f"retrieval-{options.embedder}", results)


def _measured(
    options: Options, scorer: scoring.Scorer, model: Model, vectors: Vectors, dataset: datasets.Dataset
) -> list[report.Result]:
    """Measure every chosen system on one dataset, each from an empty index; print the dataset's table at the end."""
    _progress(f"{dataset.name}: embedding with {model.name}")
    vectors.prepare(dataset.texts())
    vectors.prepare(dataset.queries())
    cost = measure.embedding_cost(model, dataset)
    results = []
    for name, given, note in _variants(options.systems, dataset):
        _progress(f"{dataset.name}: {name}{note}")
        vectors.prepare(given.texts())
        with tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as directory:
            system = SYSTEMS[name](Setup(Path(directory), vectors, _embedder_spec(options)))
            run = measure.run(system, given, cost)
            system.close()
        report.write_run(
            options.output, f"{dataset.name}-{name}{'-senders' * bool(note)}-{options.embedder}", run.ranked
        )
        scores = scoring.score(scorer, given, run.ranked)
        results.append(report.Result(dataset.name, system.name + note, system.embedder_name, scores, run.timings))
    print(report.table(results), flush=True)
    return results


def _variants(systems: Sequence[str], dataset: datasets.Dataset) -> Iterator[tuple[str, datasets.Dataset, str]]:
    """Each system on the data as it is; systems that do not rank by sender also with the sender in the text."""
    for name in systems:
        yield name, dataset, ""
        if dataset.many_senders and not name.startswith("holdfast"):
            yield name, dataset.with_senders(), ", sender in the text"


def _options(arguments: Sequence[str] | None) -> Options:
    default_data = Path(os.environ.get("HOLDFAST_EVAL", "../shared/eval"))
    parser = argparse.ArgumentParser("python -m bench.retrieval", description="Measure retrieval: bench/README.md.")
    parser.add_argument("--data", type=Path, default=default_data, help="directory of the evaluation data")
    parser.add_argument("--systems", type=_system_names, default=DEFAULT, help="such as holdfast,mem0")
    parser.add_argument("--datasets", type=_names, default=_DATASETS, help="such as locomo,memdaily")
    parser.add_argument("--embedder", choices=("static", "onnx"), default="onnx")
    parser.add_argument("--output", type=Path, default=Path("bench/results"))
    return Options(**vars(parser.parse_args(arguments)))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _system_names(text: str) -> tuple[str, ...]:
    names = _names(text)
    if unknown := sorted(set(names) - set(SYSTEMS)):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(SYSTEMS)}")
    return names


def _embedder_spec(options: Options) -> str:
    return "static" if options.embedder == "static" else f"onnx:{(options.data / 'minilm').resolve()}"


def _progress(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
