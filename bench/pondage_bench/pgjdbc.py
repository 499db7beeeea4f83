"""A load of the Java driver: threads that run one prepared select each, `java/` beside this.

What is measured is the time for a fixed number of statements, from the moment when all threads have
connected and warmed up. CPU time is of the whole run, so a JVM's start is in the load's.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .loads import (
    CPU_DATABASE,
    CPU_GATEWAY,
    CPU_LOAD,
    OTHERS,
    PEAK,
    PSS,
    Context,
    Load,
    memory_metrics,
)
from .measure import run_load
from .pgwire import Endpoint
from .processes import BenchError, environment
from .results import LoadInfo, Metric
from .sides import Side

SOURCE = Path(__file__).resolve().parents[1] / "java"
BUILT = "java"
DATABASE = "prepared"
ROWS = 10_000
BUILD_SECONDS = 300.0
# Statements of all threads together before the clock starts: the JVM compiles, pgjdbc names its
# statements on the server (at the fifth execution of each).
WARM_UP_STATEMENTS = 20_000
WARM_UP_LEAST = 10
# A side slower than this is taken for dead.
SLOWEST_STATEMENTS_PER_SECOND = 2000.0
START_SECONDS = 60.0

SECONDS = Metric("seconds", "the whole run", "s", 2)
RATE = Metric("rate", "statements/s", "", 0, True)
AVERAGE = Metric("latency_ms", "average", "ms", 3)


def missing_tools() -> str | None:
    """What has to be installed, or None."""
    tools = {"java": "a JDK 17 or later", "javac": "a JDK 17 or later", "mvn": "Maven"}
    missing = sorted({what for tool, what in tools.items() if shutil.which(tool) is None})
    return f"it needs {' and '.join(missing)}" if missing else None


@dataclass(frozen=True)
class Summary:
    """What the program prints at its end. Statements of all threads together."""

    statements: int
    warm_up: int
    seconds: float


def parse_summary(text: str) -> Summary:
    """Raises BenchError when there is none, or it ran nothing."""
    found = re.search(r"^statements=(\d+) warm_up=(\d+) seconds=(\d+\.\d+)$", text, re.MULTILINE)
    if found is None or int(found[1]) == 0 or float(found[3]) <= 0.0:
        raise BenchError(f"the Java program printed no summary:\n{text[-800:]}")
    return Summary(int(found[1]), int(found[2]), float(found[3]))


def build(directory: Path) -> None:
    """Compiles the program and fetches the driver into `directory`, with Maven."""
    command = [
        "mvn", "--batch-mode", "--no-transfer-progress", "--quiet",
        f"-DbuildDirectory={directory}", "compile",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=SOURCE,
            env=environment(),
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"`{' '.join(command)}` took over {BUILD_SECONDS:.0f} s") from error
    if done.returncode != 0:
        text = done.stdout.decode(errors="replace")
        raise BenchError(f"`{' '.join(command)}` gave status {done.returncode}:\n{text[-2000:]}")


def program(directory: Path) -> list[str]:
    """The beginning of its command line, once built."""
    class_path = f"{directory / 'classes'}:{directory / 'dependency'}/*"
    # The plainest collector: others start threads that would compete with what is measured.
    return ["java", "-XX:+UseSerialGC", "-Xmx512m", "-cp", class_path, "PreparedSelects"]


class PgjdbcLoad(Load):
    """`threads` connections, `texts` different statements, each thread runs its one `statements`
    times.
    """

    def __init__(self, threads: int, texts: int, statements: int) -> None:
        self.threads = threads
        self.texts = texts
        self.statements = statements
        self.warm_up = min(statements, max(WARM_UP_LEAST, WARM_UP_STATEMENTS // threads))
        self.info = LoadInfo(
            key=f"{threads}x{texts}",
            title=f"pgjdbc, {threads} {'thread' if threads == 1 else 'threads'} x"
            f" {texts} {'text' if texts == 1 else 'texts'},"
            f" {statements:,} prepared selects each",
            command=f"java PreparedSelects ... {threads} {texts} {statements}",
            primary=SECONDS,
            metrics=(
                SECONDS, RATE, AVERAGE, CPU_GATEWAY, CPU_DATABASE, CPU_LOAD, PEAK, PSS, OTHERS,
            ),
        )  # fmt: skip

    def refusal(self, side: Side) -> str | None:
        if not side.stores:
            return "it has no tables"
        return side.refuses_prepared() or super().refusal(side)

    def run(self, context: Context, side: Side) -> dict[str, float]:
        with context.running(side, DATABASE):
            measured = run_load(
                [*program(context.scratch / BUILT), *self._arguments(side.endpoint)],
                gateway=side.pid,
                database=side.database_pid or context.cluster.pid,
                timeout=self._most_seconds(),
                directory=context.scratch,
            )
            memory = memory_metrics(side.pid) if side.pid is not None else {}
        summary = parse_summary(measured.output)
        cpu, micros = measured.cpu, 1e6 / (summary.statements + summary.warm_up)
        metrics = {
            "seconds": summary.seconds,
            "rate": summary.statements / summary.seconds,
            "latency_ms": summary.seconds * 1000.0 * self.threads / summary.statements,
            "cpu_load_us": cpu.load * micros,
            "cpu_database_us": cpu.database * micros,
            "others_cores": cpu.others,
            **memory,
        }
        if cpu.gateway is not None:
            metrics["cpu_gateway_us"] = cpu.gateway * micros
        return metrics

    def _arguments(self, endpoint: Endpoint) -> list[str]:
        return [
            endpoint.host, str(endpoint.port), endpoint.user, endpoint.database,
            *map(str, (self.threads, self.texts, self.statements, self.warm_up, ROWS)),
        ]  # fmt: skip

    def _most_seconds(self) -> float:
        all_statements = self.threads * (self.statements + self.warm_up)
        return START_SECONDS + all_statements / SLOWEST_STATEMENTS_PER_SECOND
