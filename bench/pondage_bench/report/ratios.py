"""Ratios as SVG: a bar to the right of the line is a win, one to the left a loss.

Each step along the axis doubles, so that half as fast is as long a bar as twice as fast. It is
narrow, for telephones, and has a ground of its own, for pages that are dark by other means than
the reader's system.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from .svg import COLOURS, LINE, OTHER_COLOUR, STYLE, opening

WIDTH = 420
EDGE = 10
ROW = 38
BAR = 12
AXIS = 26
BOTTOM = 10
# What is sure to fit on a line: text of 13 px has up to 7 px a letter.
LETTERS = 58
STEPS_MAX = 8
LOSS_COLOUR = "#c8372d"
RATIO_STYLE = """\
.pb-ground{fill:#fff;stroke:#d1d9e0}
.pb-value{font-weight:600}
.pb-grid{stroke:#8b929c;stroke-width:.5}
.pb-one{stroke:#1f2328;stroke-width:2}
@media (prefers-color-scheme:dark){
.pb-ground{fill:#0d1117;stroke:#3d444d}.pb-one{stroke:#e6edf3}}"""


@dataclass(frozen=True)
class Ratio:
    """`times` as good as the rival, so less than 1 is a loss; `text` is the figure as it was told.
    `kind` chooses the colour of a win; Pondage's losses have one of their own.
    """

    label: str
    kind: str
    times: float
    text: str


def ratio_chart(
    title: str, subtitle: str, source: str, ratios: Sequence[Ratio], *, says: str
) -> str:
    """One bar for each, `subtitle` above them, and at the foot where they come from."""
    above = textwrap.wrap(subtitle, LETTERS)
    below = textwrap.wrap(source, LETTERS)
    top = 45 + LINE * len(above) + AXIS
    bottom = top + ROW * len(ratios)
    height = bottom + LINE * len(below) + BOTTOM + 8
    axis = _Axis(ratios)
    ground = (
        f'<rect class="pb-ground" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'
    )
    style = STYLE + "\n" + RATIO_STYLE
    parts = opening(title, above, (WIDTH, height), style=style, says=says, behind=ground)
    parts += axis.grid(top, len(ratios))
    parts += [_row(ratio, top + ROW * at, axis) for at, ratio in enumerate(ratios)]
    parts += [
        f'<text class="pb-text pb-soft" x="8" y="{bottom + LINE * (at + 1)}">{escape(line)}</text>'
        for at, line in enumerate(below)
    ]
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


class _Axis:
    """Powers of two around all that is drawn, a half and the double at least."""

    def __init__(self, ratios: Sequence[Ratio]) -> None:
        powers = [math.log2(ratio.times) for ratio in ratios]
        self.low = min(-1, *(math.floor(power) for power in powers))
        self.high = max(1, *(math.ceil(power) for power in powers))

    def x(self, times: float) -> float:
        share = (math.log2(times) - self.low) / (self.high - self.low)
        return EDGE + share * (WIDTH - 2 * EDGE)

    def grid(self, top: int, rows: int) -> list[str]:
        """Lines beside the bars only: through the words above these they would be in the way."""
        step = 1 + (self.high - self.low) // STEPS_MAX
        one = self.x(1)
        parts = [
            f'<text class="pb-text pb-soft" text-anchor="end" x="{one - 8:.1f}" y="{top - 24}">'
            "worse</text>"
            f'<text class="pb-text pb-soft" x="{one + 8:.1f}" y="{top - 24}">better</text>'
        ]
        for power in range(self.low, self.high + 1):
            if power % step:
                continue
            x = self.x(2.0**power)
            kind = "pb-grid" if power else "pb-one"
            name = f"{2**power}x" if power >= 0 else f"1/{2**-power}"
            anchor = {self.low: "start", self.high: "end"}.get(power, "middle")
            at = {self.low: x - 2, self.high: x + 2}.get(power, x)
            path = "".join(f"M{x:.1f} {top + ROW * at + 18}v{BAR + 4}" for at in range(rows))
            parts.append(
                f'<path class="{kind}" d="{path}"/>'
                f'<text class="pb-text pb-soft" text-anchor="{anchor}" x="{at:.1f}"'
                f' y="{top - 8}">{name}</text>'
            )
        return parts


def _row(ratio: Ratio, top: int, axis: _Axis) -> str:
    """What it is and the figure on one line, the bar below it."""
    one, end = axis.x(1), axis.x(ratio.times)
    lost = ratio.times < 1 and ratio.kind == "pondage"
    colour = LOSS_COLOUR if lost else COLOURS.get(ratio.kind, OTHER_COLOUR)
    # A ratio of exactly one is seen as well.
    width = max(abs(end - one), 2.0)
    return (
        f'<text class="pb-text" x="8" y="{top + 14}">{escape(ratio.label)}</text>'
        f'<text class="pb-text pb-value" text-anchor="end" x="{WIDTH - 8}"'
        f' y="{top + 14}">{escape(ratio.text)}</text>'
        f'<rect x="{min(one, end):.1f}" y="{top + 20}" width="{width:.1f}" height="{BAR}" rx="2"'
        f' fill="{colour}"/>'
    )
