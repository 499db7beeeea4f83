"""sysbench 1.0: its command lines and its summary.

Source: sysbench's README, and its `oltp_*.lua`.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from .pgwire import Endpoint
from .processes import BenchError

DATABASE = "sysbench"
#: Asks for rows by key so that a cache keeps them; see the file.
FILL = Path(__file__).with_name("cache_fill.lua")
FILL_THREADS = 16
# What of a run is told besides the mean.
PERCENTILE = 99


@dataclass(frozen=True)
class Shape:
    """What the threads do: a script of sysbench's, or the path of one of ours."""

    script: str
    threads: int
    rows: int
    #: `--db-ps-mode`: literals in simple queries, or prepared statements.
    ps_mode: str = "disable"
    #: `--rand-type`: special is sysbench's default, three quarters of all go to 1 % of the rows.
    distribution: str = "special"
    options: tuple[str, ...] = ()
    #: Events a second of all threads; 0: as many as there can be.
    rate: int = 0

    def arguments(self) -> list[str]:
        return [
            self.script, "--db-driver=pgsql", f"--db-ps-mode={self.ps_mode}",
            f"--rand-type={self.distribution}", f"--threads={self.threads}",
            "--tables=1", f"--table-size={self.rows}", *self.options,
            *([f"--rate={self.rate}"] if self.rate else []),
        ]  # fmt: skip

    def shown(self) -> str:
        return " ".join(["sysbench", Path(self.script).name, *self.arguments()[1:]])


def program() -> Path | None:
    found = shutil.which("sysbench")
    return Path(found) if found else None


def missing() -> str | None:
    if program() is None:
        return "sysbench is not installed; on Debian and Ubuntu: apt install sysbench"
    return None


def _start(endpoint: Endpoint) -> list[str]:
    found = program()
    if found is None:
        raise BenchError(missing() or "")
    return [
        str(found), f"--pgsql-host={endpoint.host}", f"--pgsql-port={endpoint.port}",
        f"--pgsql-user={endpoint.user}", f"--pgsql-db={endpoint.database}",
    ]  # fmt: skip


def command(shape: Shape, endpoint: Endpoint, seconds: int, events: int | None) -> list[str]:
    """`events` are of all threads together, instead of `seconds`."""
    amount = [f"--events={events}", "--time=0"] if events else [f"--time={seconds}"]
    return [
        *_start(endpoint), f"--percentile={PERCENTILE}", *amount, *shape.arguments(), "run",
    ]  # fmt: skip


def prepare_command(rows: int, endpoint: Endpoint) -> list[str]:
    """Makes the table and fills it."""
    return [*_start(endpoint), *Shape("oltp_read_only", 1, rows).arguments(), "prepare"]


def fill_command(shape: Shape, endpoint: Endpoint) -> list[str]:
    """Asks for every row of the table as `shape` does, so often that a cache keeps it."""
    asked = Shape(str(FILL), FILL_THREADS, shape.rows, shape.ps_mode)
    return [*_start(endpoint), *asked.arguments(), "fill"]


@dataclass(frozen=True)
class Summary:
    """`queries` contain BEGIN and COMMIT; the latencies are those of whole events."""

    queries: int
    per_second: float
    average_ms: float
    percentile_ms: float


def parse(output: str) -> Summary:
    """Raises BenchError when the text is no complete summary, or tells of errors."""

    def numbers(pattern: str) -> tuple[float, ...]:
        found = re.search(pattern, output, re.MULTILINE)
        if found is None:
            raise BenchError(f"sysbench printed no summary:\n{output[-800:]}")
        return tuple(float(group) for group in found.groups())

    queries, per_second = numbers(r"^\s+queries:\s+(\d+)\s+\(([\d.]+) per sec\.\)")
    (errors,) = numbers(r"^\s+ignored errors:\s+(\d+)")
    (reconnects,) = numbers(r"^\s+reconnects:\s+(\d+)")
    (average,) = numbers(r"^\s+avg:\s+([\d.]+)")
    (percentile,) = numbers(rf"^\s+{PERCENTILE}th percentile:\s+([\d.]+)")
    if errors or reconnects or not queries:
        raise BenchError(
            f"{queries:.0f} queries, {errors:.0f} errors, {reconnects:.0f} new connections:\n"
            + output[-800:]
        )
    return Summary(int(queries), per_second, average, percentile)
