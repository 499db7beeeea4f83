import tempfile
import time
import unittest
from pathlib import Path

from pondage_bench.delay import delayed
from pondage_bench.pgwire import Client
from pondage_bench.processes import Supervisor

from .fake_postgres import FakePostgres

DELAY_US = 20_000
ASKED = 5


class Delays(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.postgres = FakePostgres(self.directory)
        self.addCleanup(self.postgres.close)

    def test_every_round_trip_takes_longer_and_several_connections_do_not_wait_for_another(
        self,
    ) -> None:
        with (
            Supervisor(self.directory / "run") as supervisor,
            delayed(supervisor, self.postgres.upstream, DELAY_US) as away,
            Client(away.endpoint()) as one,
            Client(away.endpoint()) as other,
        ):
            self.assertTrue((away.socket_directory / f".s.PGSQL.{away.port}").is_socket())
            began = time.monotonic()
            for _ in range(ASKED):
                self.assertEqual(one.query("select 42"), [["42"]])
            took = time.monotonic() - began
            self.assertEqual(other.query("select 42"), [["42"]])
        self.assertGreaterEqual(took, ASKED * DELAY_US / 1e6)

    def test_who_leaves_is_forgotten(self) -> None:
        with (
            Supervisor(self.directory / "run") as supervisor,
            delayed(supervisor, self.postgres.upstream, 100) as away,
        ):
            for _ in range(ASKED):
                with Client(away.endpoint()) as client:
                    client.query("select 42")
            (process,) = (p for p in supervisor._running if p.name == "delay")
            files = Path(f"/proc/{process.pid}/fd")
            time.sleep(0.1)
            with Client(away.endpoint()) as client:
                client.query("select 42")
                now = len(list(files.iterdir()))
        self.assertLess(now, ASKED * 2 + 5)


if __name__ == "__main__":
    unittest.main()
