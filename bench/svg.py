"""A small SVG writer: logarithmic axes, bars, lines and text, in one file that is readable on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

# Colour-blind readers can distinguish the colours; their order in the key helps, too.
_STYLE = """
:root { --page: #ffffff; --ink: #1f2328; --faint: #59636e; --rule: #d1d9e0; --a: #0b5cad; --b: #d9730d; --c: #2f7d5b; }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --ink: #e6edf3; --faint: #9198a1; --rule: #30363d;
  --a: #58a6ff; --b: #f0a24a; --c: #56c596; } }
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink);
  paint-order: stroke; stroke: var(--page); stroke-width: 3px; }
.page { fill: var(--page); } .title { font-size: 15px; font-weight: 600; }
.small { font-size: 11px; fill: var(--faint); } .ours { font-weight: 600; }
.rule { stroke: var(--rule); stroke-width: 1; } .whisker { stroke: var(--ink); stroke-width: 1.5; }
.a { fill: var(--a); } .b { fill: var(--b); } .c { fill: var(--c); }
.line { fill: none; stroke-width: 2; } .line.a { stroke: var(--a); } .line.b { stroke: var(--b); }
"""
SERIES = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis between two powers of ten, drawn between two coordinates."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> Axis:
        low = 10 ** math.floor(math.log10(min(values)))
        high = 10 ** math.ceil(math.log10(max(values)))
        return cls(low, high if high > low else low * 10, start, end)

    def at(self, value: float) -> float:
        share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(round(math.log10(self.low)), round(math.log10(self.high)) + 1)]


@dataclass(frozen=True, slots=True)
class Evenly:
    """A linear axis from zero to a round number, in even steps."""

    high: float
    step: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> Evenly:
        rough = max(values) / 4
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= rough)
        return cls(step * math.ceil(max(values) / step), step, start, end)

    def at(self, value: float) -> float:
        return self.start + value / self.high * (self.end - self.start)

    def ticks(self) -> list[float]:
        return [self.step * number for number in range(round(self.high / self.step) + 1)]


class Canvas:
    """Collects shapes; `written` returns the file."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._shapes: list[str] = []

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        self._shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def bar(self, x: float, y: float, width: float, height: float, series: str, says: str) -> None:
        self._shapes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}" rx="1.5" '
            f'class="{series}"><title>{escape(says)}</title></rect>'
        )

    def rule(self, x1: float, y1: float, x2: float, y2: float, kind: str = "rule") -> None:
        self._shapes.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>')

    def line(self, points: Sequence[tuple[float, float]], series: str) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._shapes.append(f'<polyline points="{path}" class="line {series}"/>')

    def dot(self, x: float, y: float, series: str, says: str) -> None:
        self._shapes.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="{series}"><title>{escape(says)}</title></circle>'
        )

    def key(self, x: float, y: float, entries: Sequence[tuple[str, str]]) -> None:
        """Coloured squares with their meaning, from left to right."""
        for series, words in entries:
            self.bar(x, y - 9, 10, 10, series, words)
            self.text(x + 15, y, words, "small")
            x += 40 + 6.2 * len(words)

    def written(self, height: float, title: str, description: str) -> str:
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height:.0f}" '
                f'width="{self.width}" height="{height:.0f}" role="img" aria-labelledby="title desc">',
                f'<title id="title">{escape(title)}</title>',
                f'<desc id="desc">{escape(description)}</desc>',
                f"<style>{_STYLE}</style>",
                f'<rect width="{self.width}" height="{height:.0f}" class="page"/>',
                *self._shapes,
                "</svg>",
                "",
            ]
        )
