"""`--explain`: the memory that the model got before it answered, and which of it may be in the answer."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.cli.formatting import format_time
from holdfast.cli.terminal_safety import on_one_line

if TYPE_CHECKING:
    from holdfast.agent.result import AgentRunResult, MemorySource, RunExplanation

_TITLES = {"curated": "curated files", "gateway": "Memory Gateway", "sessions": "earlier sessions"}
_TEXT_CHARS = 300
# Enough of an id to find the session: `holdfast agent sessions show` accepts a prefix.
_UUID = re.compile(r"(?:chat:)?([0-9a-f]{8}-[0-9a-f]{4})(?:-[0-9a-f]{4}){2}-[0-9a-f]{12}")


def show_sources(result: AgentRunResult) -> None:
    from rich.text import Text

    from holdfast.cli import render

    screen = render.console()
    for source in result.explained.used_sources:
        text = on_one_line(source.text)
        cut = text if len(text) <= _TEXT_CHARS else text[: _TEXT_CHARS - 1] + "…"
        render.print_hanging(screen, Text("  ● ", style="bold green"), cut, indent=4)
        render.print_hanging(screen, Text("    "), describe_source(source), style="dim", indent=4)
    if why := result.explained.recall_failed:
        failure = f"the Memory Gateway gave nothing: the request failed ({on_one_line(why)})"
        render.print_hanging(screen, Text("  ○ ", style="dim"), failure, style="dim", indent=4)
    if rest := _describe_unused(result.explained):
        render.print_hanging(screen, Text("  ○ ", style="dim"), rest, style="dim", indent=4)


def describe_source(source: MemorySource) -> str:
    """One line: the layer, the place in it, the time, the score, and the words it shares with the answer."""
    parts = [
        _TITLES[source.layer],
        *(_format_origin(name, source.origin[name]) for name in _SHOWN if name in source.origin),
    ]
    return on_one_line(" · ".join([*parts, f"in the answer: {', '.join(source.shared)}"]))


def _describe_unused(explained: RunExplanation) -> str:
    others = Counter(_TITLES[source.layer] for source in explained.sources if not source.is_used)
    listed = ", ".join(f"{number} from {title}" for title, number in others.items())
    if not explained.sources:
        return "memory gave nothing: the answer is from this conversation or the model itself"
    if not explained.used_sources:
        return f"the answer has no words from memory, which gave {listed}"
    return f"also given, but not in the answer: {listed}" if listed else ""


_SHOWN = ("target", "entry", "score", "at", "session_id", "resource_uri", "id")


def _format_origin(name: str, value: str | float) -> str:
    match name:
        case "target":
            return f"{str(value).upper()}.md"
        case "entry":
            return f"entry {value}"
        case "score":
            return f"score {value:.2f}"
        case "at":
            return format_time(datetime.fromisoformat(str(value)))
        case "session_id":
            known = _UUID.fullmatch(str(value))
            return f"session {known.group(1) if known else value}"
    return str(value)
