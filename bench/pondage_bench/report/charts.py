"""Which pictures a report has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..results import LoadInfo, Metric, Results
from .lines import Line, line_chart
from .svg import Bar, bar_chart
from .tables import BASE_SIDE, Curve, as_ratio, curves_of, heading, number

# A limit is told in tables only: beside it the sides would be hard to tell apart.
NOT_PICTURED = ("constant", "limit")
# Sides of one kind have one colour in a curve, but those with trains; so is told apart which of
# them work statement by statement.
DASHED_SUFFIX = "-statements"
TRAINS_PART, TRAINS_KIND = "-trains", "trains"
# Latencies reach from fractions of a millisecond to seconds.
CURVED_BY_POWERS = ("p50_ms", "p99_ms")
# Pictured besides a load's primary metric, where a load has it.
ALSO_PICTURED = ("cpu_gateway_us",)


@dataclass(frozen=True)
class Chart:
    """`name` is a file name without extension, `load` the key of a load or a curve's title."""

    name: str
    load: str
    title: str
    svg: str


def charts_of(results: Results) -> list[Chart]:
    """The curves, of two loads at least; for each load that is in none its primary metric, then the
    others that are pictured; none without figures.
    """
    charts: list[Chart] = []
    curved: set[str] = set()
    for curve in curves_of(results):
        if len(curve.loads) < 2:
            continue
        curved |= {load.key for load in curve.loads}
        first = curve.loads[0]
        for metric in (first.primary, *(m for m in first.metrics if m.key in CURVED_BY_POWERS)):
            lines = _lines(results, curve, metric)
            if lines:
                charts.append(_curve_chart(curve, metric, lines))
    for load in results.loads:
        if load.key in curved:
            continue
        pictured = [load.primary, *(m for m in load.metrics if m.key in ALSO_PICTURED)]
        for metric in pictured:
            chart = _chart(results, load, metric)
            if chart is not None:
                charts.append(chart)
    return charts


def _chart(results: Results, load: LoadInfo, metric: Metric) -> Chart | None:
    bars: list[Bar] = []
    for side in results.sides:
        spread = results.spread(load.key, side.name, metric.key)
        if spread is None or side.kind in NOT_PICTURED:
            continue
        text = number(spread.median, metric.digits)
        ratio = results.ratio(load.key, side.name, BASE_SIDE, metric.key)
        if ratio is not None and side.name != BASE_SIDE:
            text += f"  {as_ratio(ratio)}"
        bars.append(Bar(side.name, side.kind, spread.median, spread.low, spread.high, text))
    if not bars:
        return None
    better = {True: ", more is better", False: ", less is better", None: ""}
    subtitle = heading(metric) + better[metric.higher_is_better]
    if any(bar.label == BASE_SIDE for bar in bars):
        subtitle += "; x: against direct"
    name = _file_name(f"{load.key}-{metric.key.replace('_', '-')}")
    return Chart(name, load.key, load.title, bar_chart(load.title, subtitle, bars))


def _lines(results: Results, curve: Curve, metric: Metric) -> list[Line]:
    lines: list[Line] = []
    for side in results.sides:
        spreads = [results.spread(load.key, side.name, metric.key) for load in curve.loads]
        points = {at: spread.median for at, spread in enumerate(spreads) if spread is not None}
        if points and side.kind not in NOT_PICTURED:
            kind = TRAINS_KIND if TRAINS_PART in side.name else side.kind
            lines.append(Line(side.name, kind, side.name.endswith(DASHED_SUFFIX), points))
    return lines


def _curve_chart(curve: Curve, metric: Metric, lines: Sequence[Line]) -> Chart:
    ticks = [f"{load.clients:,}" for load in curve.loads]
    by_powers = metric.key in CURVED_BY_POWERS
    subtitle = f"{heading(metric)}, by clients" + (", in powers of ten" if by_powers else "")
    picture = line_chart(curve.title, subtitle, ticks, lines, by_powers=by_powers)
    which = f"-{metric.key.replace('_', '-')}" if by_powers else ""
    return Chart(_file_name(f"curve-{curve.title}{which}"), curve.title, curve.title, picture)


def _file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", text)
