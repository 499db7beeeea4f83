"""report.md: tables and links to the pictures beside it."""

from __future__ import annotations

from collections.abc import Sequence

from ..results import Results
from . import tables
from .charts import Chart
from .tables import Table


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _table(table: Table, text_columns: int = 1) -> str:
    marks = ["---"] * text_columns + ["---:"] * (len(table.head) - text_columns)
    lines = [table.head, marks, *table.rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"


def aligned(table: Table) -> str:
    """For a terminal: columns as wide as their widest cell, all but the first to the right."""
    lines = [table.head, *table.rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.head))]
    return "".join(
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        + "\n"
        for line in lines
    )


def render(results: Results, charts: Sequence[Chart]) -> str:
    parts = [f"# {results.title}\n"]
    if results.interrupted:
        parts.append("**Interrupted: not every round was run.**\n")
    parts.append(tables.READING + "\n")
    parts.append(_table(tables.pairs_table("machine", results.machine), 2))
    parts.append(_table(tables.side_table(results), 3))
    overview = tables.overview_table(results)
    if overview is not None:
        parts.append("## All loads, with the ratio to direct\n\n" + _table(overview))
    reported = tables.reported_table(results)
    if reported is not None:
        parts.append("## Beside what was published\n\n" + _table(reported))
    for curve in tables.curves_of(results):
        parts.append(f"## {curve.title}, by clients\n")
        parts.append(_table(tables.curve_table(results, curve)))
        staying = tables.staying_table(results, curve)
        if staying is not None:
            parts.append("What is left with many clients:\n\n" + _table(staying))
        parts.extend(f"![{c.title}]({c.name}.svg)\n" for c in charts if c.load == curve.title)
        for metric, table in tables.metric_tables(results, curve):
            parts.append(f"{curve.title}, {tables.heading(metric)}:\n\n" + _table(table))
    for load in results.loads:
        parts.append(f"## {load.title}\n\n`{load.command}`\n")
        parts.append(_table(tables.load_table(results, load)))
        ratios = tables.ratio_table(results, load)
        if ratios is not None:
            parts.append("Ratios of the same round:\n\n" + _table(ratios))
        parts.extend(f"- {line}\n" for line in tables.remarks(results, load))
        parts.extend(f"![{c.title}]({c.name}.svg)\n" for c in charts if c.load == load.key)
    calls = tables.system_call_table(results)
    if calls is not None:
        parts.append("## System calls of the gateway\n\n" + tables.CALLS_READING + "\n")
        parts.append(_table(calls, 2))
    parts.extend(f"- {note}\n" for note in results.notes)
    parts.append("## Configuration\n")
    parts.append(_table(tables.pairs_table("run", results.options), 2))
    parts.append(_table(tables.pairs_table("PostgreSQL setting", results.postgres), 2))
    for side in results.sides:
        if side.configuration:
            parts.append(f"### {side.name}\n\n```\n{side.configuration}```\n")
    return "\n".join(parts)
