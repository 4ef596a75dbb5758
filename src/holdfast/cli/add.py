"""`add`: texts from the command line, or messages as JSON Lines from a file or a pipe."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import Parameter
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

import holdfast
from holdfast.cli.exits import UsageError
from holdfast.cli.formatting import format_count
from holdfast.cli.options import OnlyText, option, quoted_in_shell
from holdfast.cli.progress import Advance, progress
from holdfast.cli.store_access import open_memory, run_due_jobs
from holdfast.cli.terminal_safety import on_one_line
from holdfast.cli.verb_commands import CliOption, MemoryCall, memory_command
from holdfast.domain.results import Added, Flushed, SkippedMessage
from holdfast.errors import Conflict, InvalidInput
from holdfast.inputs import ScopeKwargs, drafts_from

BATCH = 500
_PIPE = "-"
_POSITION = re.compile(r"messages\[(\d+)\]\.?(.*)")

File = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="PATH", help="Read JSON Lines from a file.", exists=True, dir_okay=False, readable=True
    ),
]
Flush = Annotated[
    bool, typer.Option("--flush", help="Then seal the conversation, and extract memories before this returns.")
]


@dataclass(frozen=True, slots=True)
class MessageOptions:
    """The sender, role, time and id of a message."""

    sender: Annotated[OnlyText, option("--sender", "NAME", "The sender.")] = None
    role: Annotated[OnlyText, option("--role", "ROLE", "user, assistant, tool or system.  [default: user]")] = None
    timestamp: Annotated[
        OnlyText, option("--timestamp", "TIME", "The time, such as 2026-11-15T09:30.  [default: now]")
    ] = None
    message_id: Annotated[OnlyText, option("--id", "ID", "Your own id: the message is never stored twice.")] = None

    def fields(self) -> dict[str, str]:
        named = {"sender": self.sender, "role": self.role, "timestamp": self.timestamp, "id": self.message_id}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class InputLine:
    """A message and its line number in the input."""

    number: int
    message: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages that are stored together. `lines` names their lines in the input, if it has any."""

    lines: str
    drafts: tuple[holdfast.Draft, ...]


@dataclass(slots=True)
class Tally:
    """Totals over all batches so far."""

    conversation: str = ""
    stored: int = 0
    message_ids: list[str | None] = field(default_factory=list)
    skipped: list[SkippedMessage] = field(default_factory=list)
    waiting: int = 0
    flushed: Flushed | None = None

    def count(self, added: Added) -> None:
        before = len(self.message_ids)
        self.conversation = added.conversation
        self.stored += added.stored
        self.message_ids += added.message_ids
        self.skipped += [SkippedMessage(before + skip.index, skip.reason, skip.message_id) for skip in added.skipped]
        self.waiting += len(added.jobs)


def _add(call: MemoryCall) -> Tally:
    """Read the messages and store them."""
    texts, file, saying = _texts(call), call.values["file"], call.values["saying"]
    tally = Tally()
    with _open_lines(texts, file, saying) as lines:
        batches = _batches(lines)
        # Read before the store is opened: a mistake in the first lines leaves no empty store behind.
        first = next(batches, None)
        if first is None:
            raise InvalidInput("messages", "the input is empty; give one JSON object or text per line")
        with open_memory(call.chosen, create=True) as memory:
            with progress(
                "adding", quiet=call.as_json or bool(texts and texts != [_PIPE]), total=_line_count(file)
            ) as advance:
                source = call.arguments.get("source")
                _add_all(memory, chain([first], batches), tally, advance, source=source, where=call.where)
            if call.values["flush"]:
                tally.flushed = memory.flush(**call.where)
                run_due_jobs(memory, call.chosen)
    return tally


def _texts(call: MemoryCall) -> list[str]:
    """Return the texts. In the shell, words without quotes are one text."""
    texts = call.values["drafts"] or []
    quoted = quoted_in_shell.get()
    return texts if quoted is None or not texts or quoted.intersection(texts) else [" ".join(texts)]


@memory_command(
    "add",
    options={"drafts": CliOption("TEXT", optional=True), "source": CliOption(help="The source it comes from.")},
    extra={"saying": (MessageOptions, Parameter.empty), "file": (File, None), "flush": (Flush, False)},
    run=_add,
)
def add(tally: Tally, call: MemoryCall) -> None:
    """Add messages to a conversation. They are on disk and searchable when this returns.

    Each TEXT is a message. Without --conversation it goes into the one called default.

    With --file, or - to read a pipe, the input is JSON Lines: each line a text, or an object with text or content and
    any of sender, role, timestamp, id and metadata. Messages of OpenAI, Anthropic and LangChain are such objects.
    Lines are stored in batches of 500, each wholly or not at all.
    """
    print(f"Stored {format_count(tally.stored, 'message')} in conversation {on_one_line(tally.conversation)}.")
    texts = _texts(call)
    if len(texts) > 1 and not any(" " in text for text in texts):
        print("Each word is a message of its own; put quotes around a text of several words.")
    for reason, number in Counter(skip.reason for skip in tally.skipped).items():
        print(f"Skipped {number:,}, {reason}.")
    if tally.waiting:
        print("They are searchable by words; `holdfast flush` waits until they are searchable by meaning.")
    if tally.flushed is not None:
        print(
            f"Flushed: {tally.flushed.messages:,} sealed. `holdfast search --kind memory` finds the extracted memories."
        )


def _add_all(
    memory: holdfast.Memory,
    batches: Iterator[Batch],
    tally: Tally,
    advance: Advance,
    *,
    source: str | None,
    where: ScopeKwargs,
) -> None:
    """Store the batches; each is durable before the next is read."""
    try:
        for batch in batches:
            tally.count(_add_batch(memory, batch, source, where))
            advance(len(tally.message_ids))
    except InvalidInput as error:
        raise type(error)(error.field, error.problem + _stored_note(tally)) from error
    except Conflict as error:
        raise type(error)(f"{error}{_stored_note(tally)}") from error


def _add_batch(memory: holdfast.Memory, batch: Batch, source: str | None, where: ScopeKwargs) -> Added:
    try:
        return memory.add(batch.drafts, source=source, **where)
    except Conflict as error:
        raise type(error)(f"{batch.lines}{error}") from error


# --- reading ----------------------------------------------------------------------------------------------------------


@contextmanager
def _open_lines(texts: list[str], file: Path | None, saying: MessageOptions) -> Iterator[Iterator[InputLine]]:
    """The messages from the arguments, a file or stdin."""
    from_pipe = texts == [_PIPE]
    if file is not None and texts:
        raise UsageError("give texts or --file, not both")
    if file is None and not texts:
        raise UsageError("nothing to add; give a text, --file PATH, or - to read JSON Lines from a pipe")
    if file is None and not from_pipe:
        if saying.message_id is not None and len(texts) > 1:
            raise UsageError("--id names one message; give one text with it")
        yield (InputLine(0, {**saying.fields(), "text": text}) for text in texts)
        return
    if saying.message_id is not None or saying.timestamp is not None:
        raise UsageError("--id and --timestamp belong to one message; put them into the lines instead")
    if file is None:
        if sys.stdin.isatty():
            print("Reading messages, one JSON object per line; Ctrl-D ends.", file=sys.stderr)
        yield parse_lines(sys.stdin.buffer, saying.fields())
        return
    with file.open("rb") as opened_file:
        yield parse_lines(opened_file, saying.fields())


def _batches(lines: Iterator[InputLine]) -> Iterator[Batch]:
    while batch := list(islice(lines, BATCH)):
        try:
            drafts = drafts_from([line.message for line in batch])
        except InvalidInput as error:
            raise _with_line_number(error, batch) from error
        first, last = batch[0].number, batch[-1].number
        yield Batch(f"lines {first} to {last}: " if first else "", drafts)


def _line_count(file: Path | None) -> int | None:
    """The total for the progress bar. Only a regular file can be read twice."""
    if file is None or not file.is_file():
        return None
    with file.open("rb") as opened_file:
        return sum(1 for line in opened_file if line.strip())


def parse_lines(stream: BinaryIO | Iterable[bytes], defaults: dict[str, str]) -> Iterator[InputLine]:
    """Parse each line into a message; fields that it lacks come from the options."""
    for number, raw in enumerate(stream, 1):
        if raw.strip():
            yield InputLine(number, {**defaults, **_message(raw, number)})


def _message(raw: bytes, number: int) -> dict[str, Any]:
    try:
        value = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        raise InvalidInput(f"line {number}", "is not UTF-8 text") from None
    except (ValueError, RecursionError):
        raise InvalidInput(
            f"line {number}", 'is not JSON; write each message as {"text": "..."} on its own line'
        ) from None
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict):
        raise InvalidInput(f"line {number}", 'is neither a text nor an object; write {"text": "..."}')
    return value


# --- errors -----------------------------------------------------------------------------------------------------------


def _with_line_number(error: InvalidInput, batch: list[InputLine]) -> InvalidInput:
    """The same error, naming the line of the input."""
    found = _POSITION.fullmatch(error.field)
    if found is None:
        return error
    line, name = batch[int(found.group(1))].number, found.group(2)
    if line:
        return type(error)(f"line {line} {name}".rstrip(), error.problem)
    return type(error)(name or "text", error.problem)


def _stored_note(before: Tally) -> str:
    """A note about the batches stored before one failed."""
    if not before.message_ids:
        return ""
    count = f"{len(before.message_ids):,} messages"
    return f" ({count} before it are stored; another run does not store messages with an id or a timestamp twice)"
