"""memtier_benchmark and redis-benchmark: their command lines and their summaries."""

from __future__ import annotations

import os
import unittest
from pathlib import Path
from unittest import mock

from pondage_bench import memtier
from pondage_bench.memtier import Shape
from pondage_bench.pgwire import Endpoint
from pondage_bench.processes import BenchError

AT = Endpoint("127.0.0.1", 6379, "postgres", "redis")

RATIO = """\
ALL STATS
============================================================================================
Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 Latency       KB/sec
--------------------------------------------------------------------------------------------
Sets       114949.05          ---          ---         1.11300         0.96700         3.59900         6.01500     18000.00
Gets            0.00         0.00         0.00             ---             ---             ---             ---         0.00
Totals     114949.05         0.00         0.00         1.11300         0.96700         3.59900         6.01500     18000.00
"""  # noqa: E501

OWN_COMMAND = """\
Type         Ops/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 Latency       KB/sec
Incrs       136095.20         0.93955         0.75100         3.18300         5.02300      5315.00
Totals      136095.20         0.93955         0.75100         3.18300         5.02300      5315.00
"""

CSV = (
    '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms",'
    '"p99_latency_ms","max_latency_ms"\n'
    '"SET","90090.09","0.5","0.1","0.4","0.9","1.2","3.0"\n'
)


class Summaries(unittest.TestCase):
    def test_memtier_tells_totals(self) -> None:
        summary = memtier.parse(RATIO, 2.0)
        self.assertEqual((summary.per_second, summary.operations), (114949.05, 229898.1))
        self.assertEqual((summary.p50_ms, summary.p99_ms), (0.967, 3.599))

    def test_a_command_of_ones_own_has_no_hits(self) -> None:
        summary = memtier.parse(OWN_COMMAND, 1.0)
        self.assertEqual((summary.p50_ms, summary.p99_ms), (0.751, 3.183))

    def test_redis_benchmark_prints_csv(self) -> None:
        summary = memtier.parse(CSV, 1.0)
        self.assertEqual((summary.per_second, summary.p50_ms, summary.p99_ms), (90090.09, 0.4, 1.2))

    def test_errors_and_cut_output_are_no_result(self) -> None:
        for text in ("", "server 127.0.0.1:6379 handle error response: -ERR no\n" + RATIO):
            with self.assertRaises(BenchError):
                memtier.parse(text, 1.0)


class Commands(unittest.TestCase):
    def test_clients_are_shared_between_threads(self) -> None:
        with mock.patch.dict(os.environ, {"MEMTIER": "/opt/memtier"}):
            words = memtier.command(Shape(128, 4096, 1, 1, 32), AT, 5, None)
        line = " ".join(words)
        self.assertEqual(words[0], str(Path("/opt/memtier")))
        self.assertIn("-t 2 -c 64 -d 4096", line)
        self.assertIn("--ratio 1:1", line)
        self.assertIn("--pipeline 32", line)
        self.assertIn("--test-time 5", line)

    def test_a_tiny_run_is_counted(self) -> None:
        with mock.patch.dict(os.environ, {"MEMTIER": "/opt/memtier"}):
            words = memtier.command(Shape(128, 8, 1, 0, 1, counter=True), AT, 1, 2000)
        line = " ".join(words)
        self.assertIn("--command INCR counter", line)
        self.assertIn("--requests 15", line)


if __name__ == "__main__":
    unittest.main()
