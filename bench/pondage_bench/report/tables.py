"""The tables of a report, independent of how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..results import LoadInfo, Metric, Results
from ..stats import Spread

BASE_SIDE = "direct"
NOTHING = "-"
# Calls rarer than this per operation are not listed by name.
RARE_CALLS = 0.05
# Metrics that have a table by clients besides the primary one.
BY_CLIENTS = (
    "p50_ms", "p99_ms", "p99_of_p50", "deadlocks", "retried", "train_length", "cpu_gateway_us",
    "cpu_load_us",
)  # fmt: skip
# What throughput with more clients is held against.
FULL_CLIENTS = 100


@dataclass(frozen=True)
class Table:
    """`rows` are as long as `head`; the first column is text, the others are figures."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def with_spread(spread: Spread | None, digits: int) -> str:
    """`1,234 (1,200-1,250)`, without the spread when there was one round."""
    if spread is None:
        return NOTHING
    text = number(spread.median, digits)
    if spread.count < 2:
        return text
    return f"{text} ({number(spread.low, digits)} - {number(spread.high, digits)})"


def as_ratio(spread: Spread | None) -> str:
    return NOTHING if spread is None else f"{spread.median:.2f}x"


def heading(metric: Metric) -> str:
    return f"{metric.label}, {metric.unit}" if metric.unit else metric.label


def _takers(results: Results, load: LoadInfo) -> list[str]:
    return [
        name for name in results.side_names() if results.series(load.key, name, load.primary.key)
    ]


def load_table(results: Results, load: LoadInfo) -> Table:
    """A row per side that took part: its primary metric, its ratio to direct, all the rest."""
    takers = _takers(results, load)
    based = BASE_SIDE in takers
    primary = load.primary
    others = [metric for metric in load.metrics if metric is not primary]
    head = ["side", heading(primary), *(["to direct"] if based else []), *map(heading, others)]
    rows = []
    for name in takers:
        row = [name, with_spread(results.spread(load.key, name, primary.key), primary.digits)]
        if based:
            row.append(as_ratio(results.ratio(load.key, name, BASE_SIDE, primary.key)))
        for metric in others:
            spread = results.spread(load.key, name, metric.key)
            row.append(NOTHING if spread is None else number(spread.median, metric.digits))
        rows.append(row)
    return Table(head, rows)


@dataclass(frozen=True)
class Curve:
    """Loads that differ in the number of clients only, the fewest first."""

    title: str
    loads: Sequence[LoadInfo]


def curves_of(results: Results) -> list[Curve]:
    """In the order of their first loads."""
    by_title: dict[str, list[LoadInfo]] = {}
    for load in results.loads:
        if load.curve:
            by_title.setdefault(load.curve, []).append(load)
    return [
        Curve(title, sorted(loads, key=lambda load: load.clients))
        for title, loads in by_title.items()
    ]


def _curve_takers(results: Results, curve: Curve) -> list[str]:
    takers = {name for load in curve.loads for name in _takers(results, load)}
    return [name for name in results.side_names() if name in takers]


def curve_table(results: Results, curve: Curve) -> Table:
    """A row for each number of clients, a column for each side that took part in any."""
    names = _curve_takers(results, curve)
    rows = [
        [f"{load.clients:,}", *(_overview_cell(results, load, name) for name in names)]
        for load in curve.loads
    ]
    return Table(["clients", *names], rows)


def metric_tables(results: Results, curve: Curve) -> list[tuple[Metric, Table]]:
    """As `curve_table`, for the other metrics of which more is told than how a side did alone."""
    names = _curve_takers(results, curve)
    found: list[tuple[Metric, Table]] = []
    for metric in curve.loads[0].metrics:
        if metric.key not in BY_CLIENTS:
            continue
        rows = []
        for load in curve.loads:
            spreads = [results.spread(load.key, name, metric.key) for name in names]
            cells = [NOTHING if s is None else number(s.median, metric.digits) for s in spreads]
            rows.append([f"{load.clients:,}", *cells])
        found.append((metric, Table(["clients", *names], rows)))
    return found


def staying_table(results: Results, curve: Curve) -> Table | None:
    """What is left with the most clients of what there was with fewer; None without such loads.

    Against the number of clients of which it is asked, else against the best of all.
    """
    last = curve.loads[-1]
    if last.clients <= FULL_CLIENTS:
        return None
    full = next((load for load in curve.loads if load.clients == FULL_CLIENTS), None)
    rows = []
    for name in _curve_takers(results, curve):
        here = results.spread(last.key, name, last.primary.key)
        cells = [NOTHING, NOTHING]
        if here is not None:
            all_of = (results.spread(one.key, name, one.primary.key) for one in curve.loads)
            best = max(spread.median for spread in all_of if spread is not None)
            cells[1] = f"{here.median / best:.2f}" if best else NOTHING
            there = full and results.spread(full.key, name, full.primary.key)
            if there and there.median:
                cells[0] = f"{here.median / there.median:.2f}"
        rows.append([name, *cells])
    at = f"{last.clients:,} clients"
    return Table(["side", f"{at} / {FULL_CLIENTS}", f"{at} / its best"], rows)


def overview_table(results: Results) -> Table | None:
    """Every side under every load that is in no curve, with its ratio to direct; None when there
    is only one.
    """
    in_curves = {load.key for curve in curves_of(results) for load in curve.loads}
    loads = [load for load in results.loads if load.key not in in_curves]
    if len(loads) < 2:
        return None
    rows = []
    for name in results.side_names():
        cells = [_overview_cell(results, load, name) for load in loads]
        if any(cell != NOTHING for cell in cells):
            rows.append([name, *cells])
    columns = [f"{load.key}: {heading(load.primary)}" for load in loads]
    return Table(["side", *columns], rows) if rows else None


def _overview_cell(results: Results, load: LoadInfo, name: str) -> str:
    spread = results.spread(load.key, name, load.primary.key)
    if spread is None:
        return NOTHING
    text = number(spread.median, load.primary.digits)
    ratio = results.ratio(load.key, name, BASE_SIDE, load.primary.key)
    return text if ratio is None or name == BASE_SIDE else f"{text} ({as_ratio(ratio)})"


def reported_table(results: Results) -> Table | None:
    """Ratios to direct beside those that others have published; None where there are none."""
    loads = [load for load in results.loads if load.reported]
    takers = {name for load in loads for name in _takers(results, load)} - {BASE_SIDE}
    names = [name for name in results.side_names() if name in takers]
    if not names:
        return None
    rows = [
        [
            load.key,
            *(as_ratio(results.ratio(load.key, s, BASE_SIDE, load.primary.key)) for s in names),
            load.reported,
        ]
        for load in loads
    ]
    return Table(["to direct", *names, "the report's cache"], rows)


def ratio_table(results: Results, load: LoadInfo) -> Table | None:
    """Every side against every other; None when fewer than three took part."""
    takers = _takers(results, load)
    if len(takers) < 3:
        return None
    key, metric = load.key, load.primary.key
    rows = [
        [f"{side} /", *(as_ratio(results.ratio(key, side, base, metric)) for base in takers)]
        for side in takers
    ]
    return Table([load.primary.label, *takers], rows)


def system_call_table(results: Results) -> Table | None:
    """Calls per operation, the frequent ones by name."""
    if not results.system_calls:
        return None
    rows = []
    for calls in results.system_calls:
        frequent = sorted(calls.per_operation.items(), key=lambda item: -item[1])
        named = ", ".join(f"{name} {count:.2f}" for name, count in frequent if count > RARE_CALLS)
        operations = number(calls.operations, 0)
        rows.append([calls.load, calls.side, operations, f"{calls.total:.2f}", named])
    return Table(["load", "side", "operations", "calls per operation", "of which"], rows)


def pairs_table(title: str, pairs: dict[str, str]) -> Table:
    return Table([title, ""], [[name, value] for name, value in pairs.items()])


def side_table(results: Results) -> Table:
    return Table(
        ["side", "what", "version"],
        [[side.name, side.description, side.version or NOTHING] for side in results.sides],
    )


def remarks(results: Results, load: LoadInfo) -> list[str]:
    """Who took no part, and who failed."""
    lines = [
        f"{side} takes no part: {why}."
        for (key, side), why in results.skipped.items()
        if key == load.key
    ]
    lines += [
        f"{failure.side} FAILED in round {failure.round}: {failure.message.splitlines()[0]}"
        for failure in results.failures
        if failure.load == load.key
    ]
    return lines


READING = (
    "Sides ran in turn within each round. Figures are medians over the rounds, with the lowest and"
    " highest in parentheses. A ratio is the median of the ratios of single rounds. CPU is user"
    " and system time of whole process trees per operation; the load's is its program's. Gateways"
    ' start afresh for every run. "Others\' CPU" is what the rest of the machine used meanwhile:'
    " near zero for figures that count."
)
CALLS_READING = (
    "Counted by strace in runs of their own. strace slows a gateway many times over, so these are"
    " no timings, and one that batches shows fewer calls here than at full speed. Clients log in"
    " while it counts, which weighs where there are few operations."
)
