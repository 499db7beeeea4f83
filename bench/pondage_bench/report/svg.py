"""Bar charts as SVG, readable on light and on dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH = 760
LABEL_WIDTH = 170
VALUE_WIDTH = 150
ROW = 30
BAR = 18
TOP = 62
BOTTOM = 14
LINE = 17

# Each colour has enough contrast on white and on near black.
COLOURS = {
    "pondage": "#0f9d8a",
    "trains": "#d23f6f",
    "direct": "#8b929c",
    "pgbouncer": "#d0703c",
    "odyssey": "#8f79d6",
    "pgcat": "#4c8fd0",
    "pgdog": "#cc5f8d",
}
OTHER_COLOUR = "#a08a3c"

STYLE = """\
.pb-text{font:13px system-ui,sans-serif;fill:#1f2328}
.pb-title{font-weight:600;font-size:15px}
.pb-soft{fill:#59636e}
.pb-line{stroke:#1f2328;stroke-width:1.5}
@media (prefers-color-scheme:dark){
.pb-text{fill:#e6edf3}.pb-soft{fill:#9aa4ae}.pb-line{stroke:#e6edf3}}"""


@dataclass(frozen=True)
class Bar:
    """One bar with its spread; `kind` chooses the colour, `text` is what stands at its end."""

    label: str
    kind: str
    value: float
    low: float
    high: float
    text: str


def opening(
    title: str,
    lines: Sequence[str],
    size: tuple[int, int],
    *,
    style: str = STYLE,
    says: str = "",
    behind: str = "",
) -> list[str]:
    """What every picture of this size begins with: its title and the lines below it. `says` is what
    it shows in words, for who can't see it; `behind` is drawn before all else.
    """
    width, height = size
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        *([f"<desc>{escape(says)}</desc>"] if says else []),
        f"<style>{style}</style>",
        *([behind] if behind else []),
        f'<text class="pb-text pb-title" x="8" y="24">{escape(title)}</text>',
        *(
            f'<text class="pb-text pb-soft" x="8" y="{45 + LINE * at}">{escape(line)}</text>'
            for at, line in enumerate(lines)
        ),
    ]


def bar_chart(title: str, subtitle: str, bars: Sequence[Bar]) -> str:
    """Horizontal bars from zero; a thin line shows lowest to highest. Negative values show none."""
    height = TOP + ROW * len(bars) + BOTTOM
    room = WIDTH - LABEL_WIDTH - VALUE_WIDTH
    largest = max((bar.high for bar in bars), default=0.0)
    scale = room / largest if largest > 0 else 0.0
    parts = opening(title, [subtitle], (WIDTH, height))
    for index, bar in enumerate(bars):
        parts.append(_row(bar, TOP + ROW * index, scale))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _row(bar: Bar, top: int, scale: float) -> str:
    middle = top + ROW / 2
    length = max(bar.value, 0.0) * scale
    low = LABEL_WIDTH + max(bar.low, 0.0) * scale
    high = LABEL_WIDTH + max(bar.high, 0.0) * scale
    colour = COLOURS.get(bar.kind, OTHER_COLOUR)
    whisker = (
        f'<line class="pb-line" x1="{low:.1f}" x2="{high:.1f}"'
        f' y1="{middle:.1f}" y2="{middle:.1f}"/>'
        if high > low
        else ""
    )
    end = max(LABEL_WIDTH + length, high) + 8
    baseline = middle + 4.5
    return (
        f'<text class="pb-text" text-anchor="end" x="{LABEL_WIDTH - 10}" y="{baseline:.1f}">'
        f"{escape(bar.label)}</text>"
        f'<rect x="{LABEL_WIDTH}" y="{middle - BAR / 2:.1f}" width="{length:.1f}" height="{BAR}"'
        f' rx="2" fill="{colour}"/>{whisker}'
        f'<text class="pb-text" x="{end:.1f}" y="{baseline:.1f}">'
        f"{escape(bar.text)}</text>"
    )
