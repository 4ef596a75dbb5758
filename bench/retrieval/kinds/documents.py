"""Sections and passages of manuals, queried by their headings."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.retrieval.datasets import Dataset, Question, Scope
from bench.retrieval.kinds import fetch, prose, shape
from bench.retrieval.kinds.prose import Section
from bench.retrieval.kinds.sources import Source

MIN_WORDS = 15
SECTIONS_PER_MANUAL = 450
_PASSAGES_PER_MANUAL = 450
_PASSAGE_WORDS = (105, 150)
_MAX_GOLD = 3

Manual = dict[str, list[Section]]


def manual(source: Source, cache: Path, limit: int) -> Manual:
    """The sections of some files, by file: whole files until the limit is reached."""
    chosen: Manual = {}
    for path, text in fetch.files(source, cache):
        if sum(map(len, chosen.values())) >= limit:
            break
        found = prose.sections(text, markdown=path.endswith(".md"))
        long_enough = (section for section in found if shape.words(section.text) >= MIN_WORDS)
        if kept := [replace(section, text=section.text[: shape.MAX_CHARS]) for section in long_enough]:
            chosen[path] = kept
    return dict(sorted(chosen.items()))


def sections(name: str, sources: Sequence[Source], cache: Path, *, whole: bool) -> Dataset:
    """Sections as records. A session is a file, or the whole manual."""
    scopes = []
    for source in sources:
        read = manual(source, cache, SECTIONS_PER_MANUAL)
        texts = {path: [(f"{path}#{n}", part.text) for n, part in enumerate(parts)] for path, parts in read.items()}
        sessions = list(texts.items())
        if whole:
            sessions = [(source.label, [text for of_file in texts.values() for text in of_file])]
        asked = {section.heading: [f"{path}#{n}"] for path, n, section in asking(read)}
        scopes.append(Scope(source.label, shape.written_down(source.label, sessions), _questions(source.label, asked)))
    return Dataset(name, tuple(scopes))


def passages(name: str, sources: Sequence[Source], cache: Path) -> Dataset:
    """The running text in passages, across section borders; each belongs to the heading under which it begins."""
    scopes = []
    for source in sources:
        read = manual(source, cache, _PASSAGES_PER_MANUAL)
        headings = {(path, n): section.heading for path, n, section in asking(read)}
        sessions, gold = [], dict[str, list[str]]()
        for path, parts in read.items():
            cut = passages_of(parts)
            sessions.append((path, [(f"{path}#{number}", text) for number, (_, text) in enumerate(cut)]))
            for number, (section, _) in enumerate(cut):
                if heading := headings.get((path, section)):
                    gold.setdefault(heading, []).append(f"{path}#{number}")
        asked = {heading: ids for heading, ids in gold.items() if len(ids) <= _MAX_GOLD}
        scopes.append(Scope(source.label, shape.written_down(source.label, sessions), _questions(source.label, asked)))
    return Dataset(name, tuple(scopes))


def passages_of(parts: Sequence[Section]) -> list[tuple[int, str]]:
    """Each passage with the number of the section in which it begins."""
    least, most = _PASSAGE_WORDS
    cut: list[tuple[int, str]] = []
    lines: list[str] = []
    begun, held = 0, 0
    for number, part in enumerate(parts):
        for line in _short_lines(part.text, most - least):
            if not lines:
                begun = number
            lines.append(line)
            held += shape.words(line)
            if held >= least:
                cut.append((begun, "\n".join(lines).strip("\n")))
                lines, held = [], 0
    if held >= MIN_WORDS:
        cut.append((begun, "\n".join(lines).strip("\n")))
    return cut


def _short_lines(text: str, most: int) -> list[str]:
    lines: list[str] = []
    for line in text.split("\n"):
        parts = line.split() if shape.words(line) > most else []
        lines += [" ".join(parts[start : start + most]) for start in range(0, len(parts), most)] or [line]
    return lines


def asking(read: Manual) -> list[tuple[str, int, Section]]:
    """The sections with usable headings that are unique within the manual."""
    seen = Counter(section.heading.casefold() for parts in read.values() for section in parts)
    return [
        (path, number, section)
        for path, parts in read.items()
        for number, section in enumerate(parts)
        if seen[section.heading.casefold()] == 1 and prose.asks(section.heading)
    ]


def _questions(label: str, asked: dict[str, list[str]]) -> tuple[Question, ...]:
    return tuple(
        Question(f"{label}/q{number}", heading, tuple(gold), "heading", counted=True)
        for number, (heading, gold) in enumerate(asked.items())
    )
