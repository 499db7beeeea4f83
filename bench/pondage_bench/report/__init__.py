"""Writes what a run measured: results.json, report.md with pictures, and one report.html."""

from __future__ import annotations

import json
from pathlib import Path

from ..results import Results
from . import html, markdown, tables
from .charts import charts_of

__all__ = ["curves", "write"]


def write(results: Results, directory: Path) -> list[Path]:
    """Creates `directory` when it is missing and replaces older reports in it; what it wrote."""
    directory.mkdir(parents=True, exist_ok=True)
    charts = charts_of(results)
    files = {f"{chart.name}.svg": chart.svg for chart in charts}
    files["results.json"] = json.dumps(results.as_json(), indent=1) + "\n"
    files["report.md"] = markdown.render(results, charts)
    files["report.html"] = html.render(results, charts)
    for name, text in files.items():
        (directory / name).write_text(text)
    return [directory / name for name in ("results.json", "report.md", "report.html")]


def curves(results: Results) -> str:
    """The tables of loads by clients and of published ratios, for a terminal; empty without."""
    reported = tables.reported_table(results)
    beside = [markdown.aligned(reported)] if reported is not None else []
    by_clients = [
        f"{curve.title}: {tables.heading(curve.loads[0].primary)}\n"
        + markdown.aligned(tables.curve_table(results, curve))
        for curve in tables.curves_of(results)
    ]
    return "\n".join([*by_clients, *beside])
