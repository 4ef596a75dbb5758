"""`demo`: the main features in under a minute, in a temporary store.

Every step makes the calls it shows, and prints their results.
"""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import holdfast
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json
from holdfast.settings import read_settings

if TYPE_CHECKING:
    from rich.console import Console

CONVERSATION = (
    {"sender": "Ana", "text": "I moved to Lisbon last week.", "timestamp": "2026-03-02T09:00Z"},
    {"sender": "Ben", "text": "Congratulations! How is the new office?", "timestamp": "2026-03-02T09:01Z"},
    {"sender": "Ana", "text": "Bright, and I can cycle there along the river.", "timestamp": "2026-03-02T09:02Z"},
    {"sender": "Ben", "text": "Shall I bring snacks for the meeting on Friday?", "timestamp": "2026-03-02T09:03Z"},
    {"sender": "Ana", "text": "Please do, but peanuts make my throat swell up.", "timestamp": "2026-03-02T09:04Z"},
    {"sender": "Ben", "text": "Noted. My sister just adopted a puppy, by the way.", "timestamp": "2026-03-02T09:05Z"},
)
BY_MEANING = "What is she allergic to?"
CITY = "Which city did Ana move to?"
ELSEWHERE = "What is the capital of Mongolia?"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its code, as three lines of Python, the result, and a function that prints it."""

    name: str
    lesson: str
    code: str
    result: object
    show: Callable[[Console], None]

    @property
    def calls(self) -> str:
        return textwrap.dedent(self.code).strip()


def demo(as_json: Json = False) -> None:
    """Show what a memory does in under a minute.

    Add, search by meaning, explain, recall for a model, correct, look back, forget: each with its lines of Python. It
    needs no key and no network, and leaves no file.
    """
    # Windows cannot delete open files: the memory is closed first.
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        path = Path(folder) / "memory.db"
        with holdfast.open(path, embedder="static", settings=read_settings()) as memory:
            if as_json:
                steps = [
                    {"step": step.name, "code": step.calls, "result": step.result} for step in run_steps(memory, path)
                ]
                print_json({"steps": steps})
            else:
                _show(run_steps(memory, path))


def run_steps(memory: holdfast.Memory, path: Path) -> Iterator[Step]:
    """Yield the steps; each runs when it is requested."""
    yield _add(memory)
    yield _search(memory)
    yield _explain(memory)
    yield _recall(memory)
    learned = _extract_memory(memory)
    yield _learn(learned)
    yield _correct(memory, learned)
    yield _look_back(memory, learned)
    yield _forget(memory, path)


def _add(memory: holdfast.Memory) -> Step:
    added = memory.add(CONVERSATION, subject="ana", conversation="coffee")

    def show(screen: Console) -> None:
        for message in CONVERSATION:
            screen.print(f"  {message['sender']}: {message['text']}")
        screen.print(f"  → stored {added.stored} messages: on disk, and searchable now", style="green")

    return Step(
        "add",
        "Store messages. When the call returns, they are durable.",
        """
        memory = holdfast.open("memory.db")
        memory.add(messages, subject="ana", conversation="coffee")
        """,
        added,
        show,
    )


def _search(memory: holdfast.Memory) -> Step:
    hits = memory.search(BY_MEANING, subject="ana", top_k=3)

    def show(screen: Console) -> None:
        for hit in hits:
            screen.print(f"  {hit.score:.2f}  {hit.text}", style="bold" if hit is hits[0] else "dim")

    return Step(
        "search",
        "Ask in your own words. The best result shares none of them: found by meaning, at a low score.",
        f"""
        for hit in memory.search("{BY_MEANING}", subject="ana", top_k=3):
            print(hit.score, hit.text)
        """,
        hits,
        show,
    )


def _explain(memory: holdfast.Memory) -> Step:
    explained = memory.explain(BY_MEANING, subject="ana", top_k=1)

    def show(screen: Console) -> None:
        from holdfast.cli import render

        best = explained.hits[0]
        render.show_components(screen, best.components)
        words = next((part.raw for part in best.components if part.name == "words"), 0.0)
        screen.print(
            f"  → shared words measure {words:.3f}; {explained.candidates} candidates were ranked", style="green"
        )
        render.show_evidence(screen, best.evidence)

    return Step(
        "explain",
        "Why this one? Every part of its score, and its evidence.",
        f"""
        why = memory.explain("{BY_MEANING}", subject="ana", top_k=1)
        print(why.hits[0].components, why.hits[0].evidence)
        """,
        explained,
        show,
    )


def _recall(memory: holdfast.Memory) -> Step:
    recalled = memory.recall(BY_MEANING, subject="ana", budget_chars=250)
    nothing = memory.recall(ELSEWHERE, subject="ana")

    def show(screen: Console) -> None:
        from rich.text import Text

        screen.print(Text(textwrap.indent(recalled.message, "  ")), soft_wrap=True)
        screen.print(f"  {ELSEWHERE} → {len(nothing.hits)} records", style="bold")
        screen.print(f"  → {nothing.reason}", style="green")

    return Step(
        "recall",
        "What a model is shown: what bears on the question, best first. If nothing does: nothing, and why.",
        f"""
        print(memory.recall("{BY_MEANING}", subject="ana", budget_chars=250).message)
        print(memory.recall("{ELSEWHERE}", subject="ana").reason)
        """,
        {"recalled": recalled, "nothing": nothing},
        show,
    )


def _extract_memory(memory: holdfast.Memory) -> holdfast.MemoryRecord:
    memory.flush(subject="ana", conversation="coffee")
    memory.drain()
    learned = memory.list(kind="memory", subject="ana").items[0]
    assert isinstance(learned, holdfast.MemoryRecord)
    return learned


def _learn(learned: holdfast.MemoryRecord) -> Step:
    def show(screen: Console) -> None:
        from holdfast.cli import render

        screen.print(f"  memory: {learned.text}", style="bold")
        render.show_evidence(screen, learned.evidence)

    return Step(
        "learn",
        "Rules extracted this memory from the conversation, and it keeps a link to its evidence.",
        """
        memory.flush(subject="ana", conversation="coffee")
        memory.drain()
        learned = memory.list(kind="memory", subject="ana").items[0]
        """,
        learned,
        show,
    )


def _correct(memory: holdfast.Memory, learned: holdfast.MemoryRecord) -> Step:
    memory.correct(learned.id, "Ana moved to Porto at the end of February 2026.", reason="it was Porto")
    now = memory.search(CITY, subject="ana", kind="memory")
    return Step(
        "correct",
        "A correction replaces the memory it corrects.",
        f"""
        memory.correct(learned.id, "Ana moved to Porto at the end of February 2026.", reason="it was Porto")
        memory.search("{CITY}", subject="ana", kind="memory")
        """,
        now,
        partial(_show_revisions, "now", now),
    )


def _look_back(memory: holdfast.Memory, learned: holdfast.MemoryRecord) -> Step:
    before = memory.search(CITY, subject="ana", kind="memory", as_of=learned.recorded_at)
    return Step(
        "as_of",
        "History stays readable: search as of the time before the correction.",
        f"""
        memory.search("{CITY}", subject="ana", kind="memory",
                      as_of=learned.recorded_at)
        """,
        before,
        partial(_show_revisions, "then", before),
    )


def _show_revisions(when: str, hits: Sequence[holdfast.Hit], screen: Console) -> None:
    for hit in hits:
        screen.print(f"  {when}: {hit.text} (revision {hit.revision})", style="bold")


def _forget(memory: holdfast.Memory, path: Path) -> Step:
    preview = memory.forget_preview(subject="ana")
    receipt = memory.forget(subject="ana", token=preview.token)
    left = memory.search(BY_MEANING, subject="ana")
    in_file = any(b"peanuts" in file.read_bytes() for file in path.parent.iterdir())

    def show(screen: Console) -> None:
        from holdfast.cli import render

        render.show_preview(screen, preview, ())
        render.show_receipt(screen, receipt)
        screen.print(f"  → the same search now finds {len(left)} results", style="green")
        screen.print(f"  → “peanuts” among the bytes on disk: {'yes' if in_file else 'no'}", style="green")

    return Step(
        "forget",
        "Forgetting deletes the data: a preview, a receipt, and nothing left to find.",
        f"""
        preview = memory.forget_preview(subject="ana")
        receipt = memory.forget(subject="ana", token=preview.token)
        memory.search("{BY_MEANING}", subject="ana")
        """,
        {"preview": preview, "receipt": receipt, "found_afterwards": left, "in_file": in_file},
        show,
    )


def _show(steps: Iterator[Step]) -> None:
    from rich.text import Text

    from holdfast.cli import render

    screen = render.console()
    for number, step in enumerate(steps, 1):
        screen.print(Text(f"{number}. {step.lesson}", style="bold yellow"))
        screen.print(Text(textwrap.indent(step.calls, "  "), style="blue"), soft_wrap=True)
        step.show(screen)
        screen.print()
    screen.print(Text("That was a temporary store, now deleted. Create your own:", style="bold"))
    screen.print('  holdfast add "I moved to Lisbon last week." --subject ana')
    screen.print('  holdfast recall "Where does Ana live?" --subject ana')
