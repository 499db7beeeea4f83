import tempfile
import unittest
from pathlib import Path

from pondage_bench.pgbench import Amount, Profile, parse_log, parse_summary, read_logs
from pondage_bench.pgwire import Endpoint
from pondage_bench.processes import BenchError
from pondage_bench.scripts import PIPELINED, SCRIPTS, SINGLE_ROW_WRITES

KEPT = """\
transaction type: <builtin: select only>
number of transactions actually processed: 34123
number of failed transactions: 0 (0.000%)
latency average = 1.617 ms
initial connection time = 20.913 ms
tps = 34626.123456 (without initial connection time)
"""
RECONNECTING = """\
number of transactions actually processed: 759
number of failed transactions: 3 (0.395%)
latency average = 221.529 ms
average connection time = 7.905 ms
tps = 252.788000 (including reconnection times)
"""
VERSION_13 = """\
number of transactions actually processed: 500
latency average = 2.000 ms
tps = 490.5 (including connections establishing)
tps = 999.9 (excluding connections establishing)
"""
ENDPOINT = Endpoint("127.0.0.1", 6432, "postgres", "scale10")


class Summaries(unittest.TestCase):
    def test_a_summary_with_connections_kept(self) -> None:
        summary = parse_summary(KEPT)
        self.assertAlmostEqual(summary.tps, 34626.123456)
        self.assertEqual((summary.transactions, summary.failed), (34123, 0))
        self.assertAlmostEqual(summary.latency_ms, 1.617)

    def test_failed_transactions_are_seen(self) -> None:
        self.assertEqual(parse_summary(RECONNECTING).failed, 3)

    def test_the_rate_that_includes_connecting_is_taken_where_there_are_two(self) -> None:
        self.assertAlmostEqual(parse_summary(VERSION_13).tps, 490.5)

    def test_output_without_a_summary_is_an_error_that_shows_it(self) -> None:
        with self.assertRaisesRegex(BenchError, "connection refused"):
            parse_summary("pgbench: error: connection refused")


class Logs(unittest.TestCase):
    def test_latencies_come_from_the_third_field_in_microseconds(self) -> None:
        lines = [f"0 {n} {n * 1000} 0 1700000000 {n}" for n in range(1, 101)]
        latencies = parse_log(lines)
        self.assertEqual((latencies.p50, latencies.p99, latencies.count), (50.0, 99.0, 100))

    def test_transactions_that_failed_have_no_latency(self) -> None:
        lines = ["0 1 failed 0 1700000000 1", "0 2 2000 0 1700000000 2"]
        self.assertEqual(parse_log(lines).count, 1)

    def test_an_empty_log_is_an_error(self) -> None:
        with self.assertRaises(BenchError):
            parse_log([])

    def test_logs_of_all_threads_are_read(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            prefix = Path(directory) / "transactions"
            for name, micros in (("transactions.77", 1000), ("transactions.77.1", 3000)):
                (Path(directory) / name).write_text(f"0 1 {micros} 0 1700000000 1\n")
            latencies = read_logs(prefix)
            self.assertEqual((latencies.p50, latencies.p99), (1.0, 3.0))


class Commands(unittest.TestCase):
    def command(self, profile: Profile, amount: Amount, log_prefix: Path | None = None) -> str:
        program, scripts = Path("/usr/bin/pgbench"), Path("/scripts")
        return " ".join(
            profile.command(program, ENDPOINT, amount, scripts=scripts, log_prefix=log_prefix)
        )

    def test_reconnecting_selects(self) -> None:
        profile = Profile("select-only", "simple", 56, reconnect=True)
        self.assertEqual(
            self.command(profile, Amount(10)),
            "/usr/bin/pgbench -n -S -M simple -c 56 -j 2 -C -T 10"
            " -h 127.0.0.1 -p 6432 -U postgres scale10",
        )

    def test_one_client_has_one_thread_and_a_log(self) -> None:
        profile = Profile("select-only", "prepared", 1, log=True)
        command = self.command(profile, Amount(1, 25), Path("/t/log"))
        self.assertIn("-j 1 -t 25 -l --log-prefix /t/log", command)

    def test_a_pipeline_is_told_the_scale_that_pgbench_can_not_find_out(self) -> None:
        profile = Profile(PIPELINED, "prepared", 56, scale=100)
        self.assertIn("-f /scripts/pipelined.sql -s 100 ", self.command(profile, Amount(10)))

    def test_our_own_scripts_count_their_statements(self) -> None:
        for name, script in SCRIPTS.items():
            with self.subTest(name):
                self.assertEqual(Profile(name, "prepared", 1).statements, script.statements)
                self.assertEqual(script.text.count(";\n"), script.statements)
        self.assertEqual(Profile("tpcb-like", "simple", 1).statements, 1)

    def test_tpcb_and_updates_write(self) -> None:
        self.assertTrue(Profile("tpcb-like", "simple", 1).writes)
        self.assertTrue(Profile(SINGLE_ROW_WRITES, "simple", 1).writes)
        self.assertFalse(Profile("select-only", "simple", 1).writes)
        self.assertFalse(Profile(PIPELINED, "prepared", 1).writes)
