"""Human-readable output. Stored text goes through `visible` and is never parsed as markup."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from holdfast.cli.formatting import format_count, format_time
from holdfast.cli.terminal_safety import escape_controls, on_one_line
from holdfast.domain.forgetting import ForgetPreview, ForgetReceipt
from holdfast.domain.memory import Evidence, MemoryRecord
from holdfast.domain.results import Absence, Component, Explanation, Hit, HitKind, Record, ScoreBasis, Way
from holdfast.domain.transcript import Message

# A pipe or file has no width to wrap texts at; tables must fit something.
UNBOUNDED = 10_000
PIPED_TABLE_WIDTH = 100
_INDENT = 9
_LEAST_WIDTH = 20
_IDS = ("id", "operation", "skill")
_NOTHING = "-"


def console(piped_width: int = UNBOUNDED) -> Console:
    """Return the screen. Rich honours NO_COLOR and dumb terminals by itself."""
    width = None if sys.stdout.isatty() else piped_width
    return Console(width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


# --- search and explain -----------------------------------------------------------------------------------------------


def show_hits(screen: Console, hits: Sequence[Hit]) -> None:
    for place, hit in enumerate(hits, 1):
        show_hit(screen, place, hit)


def show_hit(screen: Console, place: int, hit: Hit) -> None:
    head = Text(f"{place:>2}  ", style="bold").append(f"{hit.score:.2f}", style="cyan").append(" ")
    print_hanging(screen, head, hit.text)
    _print_about(screen, describe_hit(hit), _INDENT)


def describe_hit(hit: Hit) -> str:
    """One line: kind, sender, time, conversation and id."""
    if hit.kind is HitKind.MEMORY:
        trust = hit.trust or "unknown"
        parts = [f"memory on {hit.plane}", f"trust {trust}", f"recorded {format_time(hit.recorded_at)}"]
    else:
        parts = [f"message from {hit.sender or hit.role}", format_time(hit.said_at or hit.recorded_at)]
    if hit.scope.conversation:
        parts.append(f"conversation {hit.scope.conversation}")
    return on_one_line(" · ".join([*parts, hit.id]))


def show_explanation(screen: Console, explained: Explanation, asked_for: str | None = None) -> None:
    """Print an explanation. `asked_for` is a record id; the output says whether it was found."""
    understood = ", ".join(f"{name} {value}" for name, value in explained.query.items())
    weighed = format_count(explained.candidates, "candidate")
    _print_about(screen, on_one_line(f"{weighed} · embedder {explained.embedder} · query: {understood or '-'}"))
    for way in explained.ways:
        if way.approximate or way.reason:
            _print_about(screen, describe_search(way))
    if explained.basis is not None:
        _print_about(screen, _describe_basis(explained.basis))
    if explained.recall is not None:
        screen.print(Text(f"{explained.recall:.0%} of what an exact search finds is among these", style="dim"))
    for place, hit in enumerate(explained.hits, 1):
        screen.print()
        show_hit(screen, place, hit)
        show_components(screen, hit.components)
        show_evidence(screen, hit.evidence)
        if hit.contradicts:
            screen.print(Text(f"contradicts {', '.join(map(on_one_line, hit.contradicts))}", style="yellow"))
    if explained.absence is not None:
        _show_absence(screen, explained.absence)
    elif (at := next((place for place, hit in enumerate(explained.hits, 1) if hit.id == asked_for), None)) is not None:
        screen.print()
        came = f"{on_one_line(explained.hits[at - 1].id)} was found, at rank {at} of {len(explained.hits)}"
        screen.print(Text(came, style="green"))


def show_records(screen: Console, records: Sequence[Record]) -> None:
    """Print each record as its text and one line about it."""
    for record in records:
        print_hanging(screen, Text(), record.text, indent=0)
        _print_about(screen, describe_record(record), 4)


def describe_record(record: Record) -> str:
    """One line: kind, sender or trust, time, conversation and id."""
    if isinstance(record, MemoryRecord):
        parts = [f"memory on {record.plane}", f"trust {record.trust}"]
        parts += [f"recorded {format_time(record.recorded_at)}"]
    else:
        parts = [f"message from {record.sender or record.role}", format_time(record.said_at)]
    if record.scope.conversation:
        parts.append(f"conversation {record.scope.conversation}")
    return on_one_line(" · ".join([*parts, record.id]))


def show_record(screen: Console, record: Record) -> None:
    """Print the text of a record, then everything else that is known about it."""
    print_hanging(screen, Text(), record.text, indent=0)
    facts: dict[str, object] = {"id": record.id}
    if isinstance(record, MemoryRecord):
        facts |= {
            "kind": f"memory on {record.plane}",
            "trust": record.trust,
            "status": record.status,
            "revision": record.revision,
            "author": record.author,
            "reason": record.reason,
            "true from": record.validity.since,
            "true until": record.validity.until,
            "evidence": ", ".join(link.message_id for link in record.evidence),
            "contradicts": ", ".join(record.contradicts),
        }
    else:
        facts |= {"kind": "message", "role": record.role, "sender": record.sender, "said": record.said_at}
    facts |= {"source": record.source, "recorded": record.recorded_at, "replaced": record.superseded_at}
    facts |= record.scope.given()
    facts |= {f"metadata {name}": value for name, value in record.metadata.items()}
    show_facts({name: value for name, value in facts.items() if value not in (None, "")})


def show_history(screen: Console, revisions: Sequence[Record]) -> None:
    for record in revisions:
        print_hanging(screen, Text(f"{record.revision:>3}  ", style="bold"), record.text)
        _print_about(screen, describe_revision(record), _INDENT)


def describe_revision(record: Record) -> str:
    """One line: the time, the author and the reason of a revision, when it is true, and what it rests on."""
    parts = [f"recorded {format_time(record.recorded_at)}"]
    if isinstance(record, MemoryRecord):
        parts += [f"by {record.author}", f"trust {record.trust}"]
        parts += [record.reason] if record.reason else []
        parts += [f"true from {format_time(record.validity.since)}"] if record.validity.since else []
        parts += [f"true until {format_time(record.validity.until)}"] if record.validity.until else []
        parts += [f"evidence {', '.join(link.message_id for link in record.evidence)}"] if record.evidence else []
        parts += [f"contradicts {', '.join(record.contradicts)}"] if record.contradicts else []
    return on_one_line(" · ".join([*parts, record.id]))


def _describe_basis(basis: ScoreBasis) -> str:
    signals = ", ".join(f"{name} {value:.2f}" for name, value in asdict(basis.signals).items())
    return (
        f"an answer is here with a likelihood of {basis.answer:.2f} ({signals}; {basis.calibration} of ranking"
        f" {basis.ranking}); recall shows scores from {basis.floor:.3f}"
    )


def describe_search(way: Way) -> str:
    """Describe the search of a large partition."""
    of = f"{way.partition}: {format_count(way.records, 'record')}"
    if not way.approximate:
        return f"{of}, searched exactly: {way.reason}"
    built = f"{way.built_at:%Y-%m-%d %H:%M}" if way.built_at else "-"
    return (
        f"{of}, searched by an approximate index of {way.indexed:,} (built {built} UTC, recall then "
        f"{way.index_recall:.2f}); {way.unindexed:,} newer compared one by one"
    )


def show_components(screen: Console, components: Sequence[Component]) -> None:
    """Print the parts of a score, largest first. Parts that are 0 are only named."""
    table = new_table(("part", "measured>", "over candidates>", "weight>", "adds>"))
    for part in sorted(components, key=lambda part: -part.contribution):
        if part.raw or part.contribution:
            numbers = (part.raw, part.normalized, part.weight, part.contribution)
            table.add_row(part.name, *(f"{number:.3f}" for number in numbers))
    screen.print(table)
    idle = ", ".join(part.name for part in components if not part.raw and not part.contribution)
    if idle:
        screen.print(Text(f"added nothing: {idle}", style="dim"))


def show_evidence(screen: Console, evidence: Sequence[Evidence]) -> None:
    for source in evidence:
        head = Text("evidence ", style="green")
        said = f"{format_time(source.said_at)}, {source.sender or 'unnamed'}: {source.text}"
        print_hanging(screen, head, said)
    if not evidence:
        screen.print(Text("evidence none: it was recorded directly", style="dim"))


def _show_absence(screen: Console, absence: Absence) -> None:
    screen.print()
    screen.print(Text(f"{on_one_line(absence.id)} was not found: {on_one_line(absence.reason)}", style="yellow"))
    if absence.components:
        show_components(screen, absence.components)


# --- forget -----------------------------------------------------------------------------------------------------------


def show_preview(screen: Console, preview: ForgetPreview, some: Sequence[Record]) -> None:
    touched = [format_count(preview.messages, "message"), format_count(preview.memories, "memory", "memories")]
    if preview.resources:
        touched.append(format_count(preview.resources, "resource"))
    if preview.tool_entries:
        touched.append(f"{preview.tool_entries:,} of tools and their use")
    if preview.deliveries:
        touched.append(f"the payloads of {format_count(preview.deliveries, 'delivery', 'deliveries')}")
    screen.print(Text(f"This forgets {' and '.join(touched)}{':' if some else '.'}", style="bold"))
    for record in some:
        kind = "message" if isinstance(record, Message) else "memory"
        print_hanging(screen, Text(f"{kind:>8} ", style="dim"), record.text)
    hidden = preview.messages + preview.memories - len(some)
    if some and hidden > 0:
        screen.print(Text(f"         and {hidden:,} more", style="dim"))
    if preview.derived:
        screen.print(f"{format_count(preview.derived, 'memory', 'memories')} of these have no other evidence.")
    if preview.weakened:
        screen.print(
            f"{format_count(preview.weakened, 'other memory', 'other memories')} stay, but lose a link to evidence."
        )


def show_receipt(screen: Console, receipt: ForgetReceipt) -> None:
    screen.print(
        Text("Forgotten: ", style="bold green").append(
            f"{format_count(receipt.messages, 'message')}, {format_count(receipt.memories, 'memory', 'memories')}"
            f"{', ' + format_count(receipt.resources, 'resource') if receipt.resources else ''}"
            f" ({format_count(receipt.revisions, 'revision')})",
            style="default",
        )
    )
    facts = {
        "receipt": receipt.operation_id,
        "when": receipt.forgotten_at,
        "tombstones": receipt.tombstones,
        "still found": receipt.remaining,
        "bytes": "gone from the store and its log" if receipt.scrubbed else "a job removes them",
    }
    if outside := [f"{each.binding} ({each.provider})" for each in receipt.remaining_outside]:
        facts["not reached"] = f"what was sent to {', '.join(outside)}"
    if receipt.backups:
        facts["still in backups"] = ", ".join(each.name for each in receipt.backups)
    show_facts(facts)


# --- shared -----------------------------------------------------------------------------------------------------------


def show_facts(facts: Mapping[str, object]) -> None:
    screen, widest = console(PIPED_TABLE_WIDTH), max(map(len, facts), default=0)
    for name, value in facts.items():
        _print_words(screen, Text(f"  {name:<{widest}}  ", style="dim"), _cell(value), indent=widest + 4)


def new_table(columns: Iterable[str]) -> Table:
    """Return a table without rows. A column whose name ends with > is aligned to the right."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, header_style="dim")
    for column in columns:
        # Wrap long cells; truncated ones would lose information.
        table.add_column(column.removesuffix(">"), justify="right" if column.endswith(">") else "left", overflow="fold")
    return table


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], otherwise: str) -> None:
    """Print rows as a table, or `otherwise` if there are none. Stored names are escaped."""
    table = new_table(columns)
    body = [[_cell(each) for each in row] for row in rows]
    for cells in body:
        table.add_row(*map(Text, cells))
    screen = console(PIPED_TABLE_WIDTH)
    if not body:
        print(otherwise)
    elif columns[-1] in _IDS and _width(screen, table) > screen.width:
        _show_as_list(screen, columns, body)
    else:
        screen.print(table)


def show_lines(lines: Iterable[str], otherwise: str) -> None:
    """Print lines as they come, or `otherwise` if there are none."""
    screen, none = console(PIPED_TABLE_WIDTH), True
    for line in lines:
        none = False
        _print_words(screen, Text(), line, indent=_INDENT)
    if none:
        print(otherwise)


def show_paragraph(text: str) -> None:
    _print_words(console(), Text(), text, indent=0)


def _print_about(screen: Console, text: str, indent: int = 0) -> None:
    """Print what is known about a record, dimmed."""
    _print_words(screen, Text(" " * indent), text, indent, style="dim")


def _print_words(screen: Console, head: Text, text: str, indent: int, style: str = "default") -> None:
    """Print one row. If it is too long it goes on below, indented. No word is broken: it may be copied."""
    width = screen.width if screen.is_terminal else min(screen.width, PIPED_TABLE_WIDTH)
    lines, room = [""], width - max(indent, head.cell_len)
    for word in text.split(" ") if head.cell_len + cell_len(text) > width else [text]:
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) > room:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    for number, line in enumerate(lines):
        screen.print((head if number == 0 else Text(" " * indent)) + Text(line, style=style), soft_wrap=True)


def _width(screen: Console, table: Table) -> int:
    """The width of the table without wrapping."""
    return Measurement.get(screen, screen.options.update_width(UNBOUNDED), table).maximum


def _show_as_list(screen: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows one by one if the table is too wide: an id that is broken over lines cannot be copied."""
    for *cells, identifier in rows:
        screen.print(Text(identifier), soft_wrap=True)
        pairs = ((column, cell) for column, cell in zip(columns, cells, strict=False) if cell != _NOTHING)
        facts = (f"{column.removesuffix('>')} {cell}" for column, cell in pairs)
        _print_words(screen, Text(" " * 4), ", ".join(facts), indent=4)


def _cell(value: object) -> str:
    """A value as text: `-` for None, `yes` or `no`, a number or a time."""
    if value is None:
        return _NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return format_time(value)
    return on_one_line(f"{value:,}" if isinstance(value, int) else str(value))


def print_hanging(screen: Console, head: Text, text: str, style: str = "default", indent: int = _INDENT) -> None:
    """Print text with a hanging indent after its head, so that no text can pass for the next result."""
    indent = max(indent, head.cell_len)
    lines = Text(escape_controls(text), style=style).wrap(screen, max(_LEAST_WIDTH, screen.width - indent))
    for number, line in enumerate(lines):
        start = head if number == 0 else Text()
        row = Text.assemble(start, " " * (indent - start.cell_len), line)
        screen.print(row, no_wrap=True, overflow="ignore", crop=False)
