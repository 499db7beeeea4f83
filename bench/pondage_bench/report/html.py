"""report.html: one page with its pictures and style inside, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..results import Results
from . import tables
from .charts import Chart
from .tables import Table

STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;
background:#fff;color:#1f2328}
table{border-collapse:collapse;margin:.8rem 0;display:block;overflow-x:auto}
th,td{border:1px solid #d1d9e0;padding:.25rem .6rem;text-align:right;white-space:nowrap}
th:first-child,td:first-child,.text td,.text th{text-align:left}
.text td{white-space:normal}
pre{overflow-x:auto;padding:.6rem;border:1px solid #d1d9e0}
svg{max-width:100%;height:auto}
.bad{color:#b42318;font-weight:600}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}
th,td,pre{border-color:#3d444d}.bad{color:#ff8d82}}
"""


def _table(table: Table, *, text: bool = False) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "\n".join(row(cells, "td") for cells in table.rows)
    kind = ' class="text"' if text else ""
    return f"<table{kind}>\n{row(table.head, 'th')}\n{body}\n</table>"


def render(results: Results, charts: Sequence[Chart]) -> str:
    title = escape(results.title)
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>",
    ]
    if results.interrupted:
        parts.append('<p class="bad">Interrupted: not every round was run.</p>')
    parts.append(f"<p>{escape(tables.READING)}</p>")
    parts.append(_table(tables.pairs_table("machine", results.machine), text=True))
    parts.append(_table(tables.side_table(results), text=True))
    overview = tables.overview_table(results)
    if overview is not None:
        parts.append("<h2>All loads, with the ratio to direct</h2>" + _table(overview))
    reported = tables.reported_table(results)
    if reported is not None:
        parts.append("<h2>Beside what was published</h2>" + _table(reported))
    for curve in tables.curves_of(results):
        parts.append(f"<h2>{escape(curve.title)}, by clients</h2>")
        parts.extend(chart.svg for chart in charts if chart.load == curve.title)
        parts.append(_table(tables.curve_table(results, curve)))
        staying = tables.staying_table(results, curve)
        if staying is not None:
            parts.append("<p>What is left with many clients:</p>" + _table(staying))
        for metric, table in tables.metric_tables(results, curve):
            title = escape(f"{curve.title}, {tables.heading(metric)}")
            parts.append(f"<p>{title}:</p>" + _table(table))
    for load in results.loads:
        parts.append(f"<h2>{escape(load.title)}</h2>\n<p><code>{escape(load.command)}</code></p>")
        parts.extend(chart.svg for chart in charts if chart.load == load.key)
        parts.append(_table(tables.load_table(results, load)))
        ratios = tables.ratio_table(results, load)
        if ratios is not None:
            parts.append("<p>Ratios of the same round:</p>" + _table(ratios))
        for line in tables.remarks(results, load):
            parts.append(f"<p{' class=bad' if 'FAILED' in line else ''}>{escape(line)}</p>")
    calls = tables.system_call_table(results)
    if calls is not None:
        parts.append(f"<h2>System calls of the gateway</h2>\n<p>{tables.CALLS_READING}</p>")
        parts.append(_table(calls, text=True))
    parts.extend(f"<p>{escape(note)}</p>" for note in results.notes)
    parts.append("<h2>Configuration</h2>")
    parts.append(_table(tables.pairs_table("run", results.options), text=True))
    parts.append(_table(tables.pairs_table("PostgreSQL setting", results.postgres), text=True))
    for side in results.sides:
        if side.configuration:
            parts.append(f"<h3>{escape(side.name)}</h3>\n<pre>{escape(side.configuration)}</pre>")
    parts.append("</body>\n</html>\n")
    return "\n".join(parts)
