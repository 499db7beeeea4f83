"""Which pictures a report has."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..results import LoadInfo, Metric, Results
from .svg import Bar, bar_chart
from .tables import BASE_SIDE, as_ratio, heading, number

# A limit is told in tables only: beside it the sides would be hard to tell apart.
NOT_PICTURED = ("constant", "limit")
# Pictured besides a load's primary metric, where a load has it.
ALSO_PICTURED = ("cpu_gateway_us",)


@dataclass(frozen=True)
class Chart:
    """`name` is a file name without extension."""

    name: str
    load: str
    title: str
    svg: str


def charts_of(results: Results) -> list[Chart]:
    """For each load its primary metric, then the others that are pictured; none without figures."""
    charts: list[Chart] = []
    for load in results.loads:
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
    name = re.sub(r"[^a-z0-9-]+", "-", f"{load.key}-{metric.key.replace('_', '-')}")
    return Chart(name, load.key, load.title, bar_chart(load.title, subtitle, bars))
