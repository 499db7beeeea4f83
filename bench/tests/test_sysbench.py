"""sysbench: its command lines and its summary."""

from __future__ import annotations

import unittest
from pathlib import Path
from unittest import mock

from pondage_bench import sysbench
from pondage_bench.pgwire import Endpoint
from pondage_bench.processes import BenchError
from pondage_bench.sysbench import Shape

AT = Endpoint("127.0.0.1", 6432, "postgres", "sysbench")

SUMMARY = """\
SQL statistics:
    queries performed:
        read:                            2800
        write:                           0
        other:                           400
        total:                           3200
    transactions:                        200    (996.51 per sec.)
    queries:                             3200   (15944.20 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          0.1998s
    total number of events:              200

Latency (ms):
         min:                                    0.90
         avg:                                    1.98
         max:                                    5.12
         99th percentile:                        3.62
         sum:                                  396.71
"""


class Summaries(unittest.TestCase):
    def test_queries_with_begin_and_commit_and_latencies_of_events(self) -> None:
        summary = sysbench.parse(SUMMARY)
        self.assertEqual((summary.queries, summary.per_second), (3200, 15944.2))
        self.assertEqual((summary.average_ms, summary.percentile_ms), (1.98, 3.62))

    def test_errors_new_connections_and_cut_output_are_no_result(self) -> None:
        errors, reconnects = "ignored errors:                      ", "reconnects:         "
        for text in (
            "",
            SUMMARY[:400],
            SUMMARY.replace(f"{errors}0", f"{errors}1"),
            SUMMARY.replace(f"{reconnects}                 0", f"{reconnects}                 1"),
            SUMMARY.replace("queries:                             3200", "queries: 0"),
        ):
            with self.subTest(text), self.assertRaises(BenchError):
                sysbench.parse(text)


class Commands(unittest.TestCase):
    def setUp(self) -> None:
        found = mock.patch.object(sysbench, "program", return_value=Path("/opt/sysbench"))
        self.addCleanup(found.stop)
        found.start()

    def test_a_shape_becomes_options(self) -> None:
        shape = Shape("oltp_read_only", 4, 1000, "auto", "uniform", ("--skip-trx=on",), rate=50)
        words = sysbench.command(shape, AT, 5, None)
        self.assertEqual((words[0], words[-1]), ("/opt/sysbench", "run"))
        line = " ".join(words)
        for part in (
            "--pgsql-port=6432 --pgsql-user=postgres --pgsql-db=sysbench",
            "--time=5 oltp_read_only --db-driver=pgsql --db-ps-mode=auto --rand-type=uniform",
            "--threads=4 --tables=1 --table-size=1000 --skip-trx=on --rate=50",
        ):
            self.assertIn(part, line)

    def test_a_tiny_run_is_counted(self) -> None:
        line = " ".join(sysbench.command(Shape("oltp_point_select", 2, 10), AT, 5, 200))
        self.assertIn("--events=200 --time=0", line)
        self.assertNotIn("--rate", line)

    def test_a_cache_is_filled_in_the_protocol_of_the_load(self) -> None:
        words = sysbench.fill_command(Shape("oltp_point_select", 1, 10, "auto"), AT)
        self.assertEqual(words[-1], "fill")
        self.assertIn(str(sysbench.FILL), words)
        self.assertIn("--db-ps-mode=auto", words)
        self.assertTrue(sysbench.FILL.is_file())

    def test_what_is_missing_is_told_with_how_to_get_it(self) -> None:
        self.assertIsNone(sysbench.missing())
        with mock.patch.object(sysbench, "program", return_value=None):
            self.assertIn("apt install sysbench", sysbench.missing() or "")
            with self.assertRaises(BenchError):
                sysbench.prepare_command(10, AT)


if __name__ == "__main__":
    unittest.main()
