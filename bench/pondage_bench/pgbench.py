"""pgbench: its command line, its summary and its log of single transactions.

Source: PostgreSQL documentation, "pgbench".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .pgwire import Endpoint
from .processes import BenchError
from .scripts import SCRIPTS
from .stats import percentile

THREADS = 2
BUILTINS = {"select-only": ["-S"], "tpcb-like": ["-b", "tpcb-like"]}


@dataclass(frozen=True)
class Amount:
    """How long a run is: seconds, or transactions per client when `transactions` is set."""

    seconds: int
    transactions: int | None = None

    def arguments(self) -> list[str]:
        if self.transactions is not None:
            return ["-t", str(self.transactions)]
        return ["-T", str(self.seconds)]


@dataclass(frozen=True)
class Profile:
    """What pgbench does, without where and how long. `script` is a builtin or one of SCRIPTS."""

    script: str
    protocol: str
    clients: int
    reconnect: bool = False
    log: bool = False
    #: Only our own scripts need to be told; pgbench finds it out for its builtins.
    scale: int = 1
    #: Transactions a second of all clients; 0: as many as there can be.
    rate: int = 0

    @property
    def writes(self) -> bool:
        own = SCRIPTS.get(self.script)
        return own.writes if own else self.script == "tpcb-like"

    @property
    def statements(self) -> int:
        """What a report counts in a run of the script: its statements, a builtin's as one."""
        own = SCRIPTS.get(self.script)
        return own.statements if own else 1

    def _arguments(self, scripts: Path) -> list[str]:
        custom = ["-f", str(scripts / f"{self.script}.sql"), "-s", str(self.scale)]
        return [
            *BUILTINS.get(self.script, custom),
            "-M", self.protocol,
            "-c", str(self.clients),
            "-j", str(min(THREADS, self.clients)),
            *(["-C"] if self.reconnect else []),
            *(["-R", str(self.rate)] if self.rate else []),
        ]  # fmt: skip

    def command(
        self,
        program: Path,
        endpoint: Endpoint,
        amount: Amount,
        *,
        scripts: Path,
        log_prefix: Path | None = None,
        database: str | None = None,
    ) -> list[str]:
        """`scripts` is the directory of our own; `database` may be a connection string. `-n`: no
        vacuum through every side.
        """
        return [
            str(program), "-n", *self._arguments(scripts), *amount.arguments(),
            *(["-l", "--log-prefix", str(log_prefix)] if log_prefix else []),
            "-h", endpoint.host, "-p", str(endpoint.port), "-U", endpoint.user,
            database or endpoint.database,
        ]  # fmt: skip

    def shown(self) -> str:
        return " ".join(["pgbench", "-n", *self._arguments(Path())])


@dataclass(frozen=True)
class Summary:
    """What pgbench prints at the end. `tps` contains reconnecting where it reconnects."""

    tps: float
    transactions: int
    failed: int
    latency_ms: float


def parse_summary(text: str) -> Summary:
    """Raises BenchError when the text is not a complete summary."""

    def number(pattern: str) -> float | None:
        found = re.search(pattern, text, re.MULTILINE)
        return float(found.group(1)) if found else None

    tps = number(r"^tps = ([\d.]+) \(including") or number(r"^tps = ([\d.]+)")
    transactions = number(r"^number of transactions actually processed: (\d+)")
    latency = number(r"^latency average = ([\d.]+) ms")
    if tps is None or transactions is None or latency is None:
        raise BenchError(f"pgbench printed no summary:\n{text[-800:]}")
    failed = number(r"^number of failed transactions: (\d+)") or 0.0
    return Summary(tps, int(transactions), int(failed), latency)


@dataclass(frozen=True)
class Latencies:
    """Milliseconds of single transactions."""

    p50: float
    p99: float
    count: int


def parse_log(lines: Iterable[str]) -> Latencies:
    """The third field of each line is the transaction's time in microseconds."""
    times: list[float] = []
    for line in lines:
        fields = line.split()
        if len(fields) >= 6 and fields[2].isdigit():
            times.append(int(fields[2]) / 1000.0)
    if not times:
        raise BenchError("pgbench logged no transaction")
    times.sort()
    return Latencies(percentile(times, 50), percentile(times, 99), len(times))


def read_logs(prefix: Path) -> Latencies:
    """pgbench names its logs prefix.PID and prefix.PID.THREAD."""
    logs = sorted(prefix.parent.glob(prefix.name + ".*"))
    return parse_log(line for log in logs for line in log.read_text().splitlines())
