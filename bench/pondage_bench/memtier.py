"""memtier_benchmark, and redis-benchmark where that is not there."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from .pgwire import Endpoint
from .processes import BenchError

# As the report has it: two threads, the clients shared between them.
THREADS = 2
KEYS = 1_000_000


@dataclass(frozen=True)
class Shape:
    """What the clients do: `sets` and `gets` are parts of a ratio."""

    clients: int
    bytes: int
    sets: int
    gets: int
    pipeline: int
    #: How many different keys.
    keys: int = KEYS
    #: Instead of SET and GET: redis-benchmark's name of a command on one key.
    counter: bool = False


def program() -> Path | None:
    """`$MEMTIER`, else from the PATH."""
    given = os.environ.get("MEMTIER")
    found = given or shutil.which("memtier_benchmark")
    return Path(found) if found else None


def fallback() -> Path | None:
    found = shutil.which("redis-benchmark")
    return Path(found) if found else None


def missing() -> str | None:
    if program() is None and fallback() is None:
        return "neither memtier_benchmark nor redis-benchmark is installed"
    return None


def command(shape: Shape, endpoint: Endpoint, seconds: int, requests: int | None) -> list[str]:
    """`requests` are of all clients together, instead of `seconds`."""
    memtier = program()
    if memtier is None:
        return _redis_benchmark(shape, endpoint, requests or 100_000 * seconds)
    threads = min(THREADS, shape.clients)
    each = shape.clients // threads
    what = (
        ["--command", "INCR counter"]
        if shape.counter
        else ["--ratio", f"{shape.sets}:{shape.gets}", "--key-pattern", "R:R"]
    )
    amount = (
        ["--requests", str(max(1, requests // (threads * each)))]
        if requests
        else ["--test-time", str(seconds)]
    )
    return [
        str(memtier), "-s", endpoint.host, "-p", str(endpoint.port), "--protocol", "redis",
        "-t", str(threads), "-c", str(each), "-d", str(shape.bytes), "--random-data",
        "--key-maximum", str(shape.keys), "--pipeline", str(shape.pipeline), "--hide-histogram",
        "--distinct-client-seed", *what, *amount,
    ]  # fmt: skip


def _redis_benchmark(shape: Shape, endpoint: Endpoint, requests: int) -> list[str]:
    program = fallback()
    if program is None:
        raise BenchError(missing() or "")
    if shape.counter:
        what = ["INCR", "counter"]
    elif shape.sets and shape.gets:
        raise BenchError("redis-benchmark can't mix SET and GET; install memtier_benchmark")
    else:
        what = ["-t", "set" if shape.sets else "get"]
    return [
        str(program), "-h", endpoint.host, "-p", str(endpoint.port), "-c", str(shape.clients),
        "-d", str(shape.bytes), "-r", str(shape.keys), "-P", str(shape.pipeline),
        "-n", str(requests), "--threads", str(min(THREADS, shape.clients)), "-q", "--csv", *what,
    ]  # fmt: skip


def fill_command(shape: Shape, endpoint: Endpoint) -> list[str] | None:
    """Sets every key once; None where only memtier_benchmark can."""
    memtier = program()
    if memtier is None:
        return None
    return [
        str(memtier), "-s", endpoint.host, "-p", str(endpoint.port), "--protocol", "redis",
        "-t", "1", "-c", "8", "-d", str(shape.bytes), "--random-data",
        "--key-maximum", str(shape.keys), "--key-pattern", "P:P", "--ratio", "1:0",
        "--requests", "allkeys", "--pipeline", "200", "--hide-histogram",
    ]  # fmt: skip


@dataclass(frozen=True)
class Summary:
    operations: float
    per_second: float
    p50_ms: float
    p99_ms: float


def parse(output: str, elapsed: float) -> Summary:
    """Raises BenchError when the text is no complete summary, or tells of errors."""
    if re.search(r"error response|handle error|-ERR", output):
        raise BenchError(f"commands failed:\n{output[-800:]}")
    totals = re.search(r"^Totals\s+([\d.]+)((?:\s+(?:[\d.]+|---))+)\s*$", output, re.MULTILINE)
    if totals:
        rest = totals.group(2).split()
        # ops/s, hits/s, misses/s, average, p50, p99, p99.9, KB/s; a command of one's own has no
        # hits and misses.
        latencies = [float(word) for word in rest if word != "---"][-5:-1]
        rate = float(totals.group(1))
        return Summary(rate * elapsed, rate, latencies[1], latencies[2])
    rows = [line.strip('"').split('","') for line in output.splitlines() if line.startswith('"')]
    if len(rows) < 2:
        raise BenchError(f"no summary was printed:\n{output[-800:]}")
    rate = float(rows[1][1])
    return Summary(rate * elapsed, rate, float(rows[1][4]), float(rows[1][6]))
