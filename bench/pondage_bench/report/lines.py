"""Line charts as SVG: a line for each side, over something that grows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from .svg import COLOURS, OTHER_COLOUR, STYLE, WIDTH, opening

LEFT = 78
LEGEND_WIDTH = 200
LEGEND_ROW = 22
TOP = 66
BOTTOM = 44
HEIGHT = 340
GRID_LINES = 4
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
GRID_STYLE = ".pb-grid{stroke:#8b929c;stroke-width:.5}"


@dataclass(frozen=True)
class Line:
    """`points` are values by the index of their tick; a side may lack some."""

    label: str
    kind: str
    dashed: bool
    points: Mapping[int, float]


def line_chart(
    title: str,
    subtitle: str,
    ticks: Sequence[str],
    lines: Sequence[Line],
    *,
    by_powers: bool = False,
) -> str:
    """From zero upwards, or in powers of ten; the ticks evenly apart; a legend at the right."""
    height = max(HEIGHT, TOP + LEGEND_ROW * len(lines) + BOTTOM)
    values = [value for line in lines for value in line.points.values()]
    marks = powers(values) if by_powers else multiples(max(values, default=0.0))
    plot = _Plot(len(ticks), height, marks, by_powers)
    style = STYLE + GRID_STYLE
    parts = opening(title, [subtitle], (WIDTH, height), style=style) + plot.grid()
    for index, tick in enumerate(ticks):
        parts.append(
            f'<text class="pb-text pb-soft" text-anchor="middle" x="{plot.x(index):.1f}"'
            f' y="{plot.bottom + 20}">{escape(tick)}</text>'
        )
    for row, line in enumerate(lines):
        parts += [plot.line(line), _legend(line, TOP + LEGEND_ROW * row)]
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def grid_step(largest: float) -> float:
    """A round number of which GRID_LINES reach `largest`."""
    if largest <= 0:
        return 1.0
    least = largest / GRID_LINES
    power = 10.0 ** math.floor(math.log10(least))
    return next((power * factor for factor in ROUND if power * factor >= least), power * 10)


def multiples(largest: float) -> list[float]:
    """What the grid of values from zero is drawn at."""
    return [grid_step(largest) * line for line in range(GRID_LINES + 1)]


def powers(values: Sequence[float]) -> list[float]:
    """Powers of ten around the values that are more than zero; two at least."""
    above = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(above))), math.ceil(math.log10(max(above)))
    return [10.0**power for power in range(low, max(high, low + 1) + 1)]


@dataclass(frozen=True)
class _Plot:
    """`marks` are the values of the grid: the lowest one at the bottom, the highest at the top."""

    ticks: int
    height: int
    marks: Sequence[float]
    by_powers: bool

    @property
    def bottom(self) -> int:
        return self.height - BOTTOM

    @property
    def right(self) -> int:
        return WIDTH - LEGEND_WIDTH

    def x(self, index: int) -> float:
        return LEFT + (index + 0.5) * (self.right - LEFT) / self.ticks

    def y(self, value: float) -> float:
        low, high = self.marks[0], self.marks[-1]
        if self.by_powers:
            value, low, high = (math.log10(max(v, low)) for v in (value, low, high))
        return self.bottom - (value - low) / (high - low) * (self.bottom - TOP)

    def grid(self) -> list[str]:
        parts = []
        for value in self.marks:
            y = self.y(value)
            parts.append(
                f'<line class="pb-grid" x1="{LEFT}" x2="{self.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
                f'<text class="pb-text pb-soft" text-anchor="end" x="{LEFT - 8}"'
                f' y="{y + 4.5:.1f}">{value:,.10g}</text>'
            )
        return parts

    def line(self, line: Line) -> str:
        places = [(self.x(at), self.y(value)) for at, value in sorted(line.points.items())]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        colour = COLOURS.get(line.kind, OTHER_COLOUR)
        dots = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in places
        )
        return f'<polyline points="{joined}" {_stroke(line)}/>{dots}'


def _stroke(line: Line) -> str:
    colour = COLOURS.get(line.kind, OTHER_COLOUR)
    dashes = ' stroke-dasharray="5 4"' if line.dashed else ""
    return f'fill="none" stroke="{colour}" stroke-width="2"{dashes}'


def _legend(line: Line, top: int) -> str:
    left = WIDTH - LEGEND_WIDTH + 14
    middle = top + LEGEND_ROW / 2
    return (
        f'<line x1="{left}" x2="{left + 26}" y1="{middle}" y2="{middle}" {_stroke(line)}/>'
        f'<text class="pb-text" x="{left + 34}" y="{middle + 4.5}">{escape(line.label)}</text>'
    )
