import signal
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from pondage_bench.processes import (
    BenchError,
    Process,
    Supervisor,
    environment,
    free_port,
    wait_until,
)

DEADLINE_SECONDS = 20.0
FOREVER = "import time; print('up', flush=True); time.sleep(600)"
# A shell starts background jobs with SIGQUIT ignored, and children inherit that.
STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "signal.signal(signal.SIGQUIT, signal.SIG_DFL); " + FOREVER
)


class Supervised(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name) / "run"

    def start(
        self,
        supervisor: Supervisor,
        code: str,
        stop_signals: tuple[signal.Signals, ...] = (signal.SIGTERM,),
    ) -> Process:
        process = supervisor.start(
            "child",
            [sys.executable, "-c", code],
            log=self.directory / "log",
            as_service=False,
            stop_signals=stop_signals,
        )

        def silent() -> str | None:
            return None if "up" in process.log.read_text() else "nothing said yet"

        wait_until("child spoke", DEADLINE_SECONDS, silent, process)
        return process

    def test_leaving_stops_processes_and_removes_the_directory(self) -> None:
        with Supervisor(self.directory) as supervisor:
            process = self.start(supervisor, FOREVER)
        self.assertEqual(process.popen.returncode, -signal.SIGTERM)
        self.assertFalse(self.directory.exists())

    def test_an_error_or_ctrl_c_stops_them_too(self) -> None:
        for error in (BenchError("side failed"), KeyboardInterrupt()):
            with self.subTest(type(error)):
                with self.assertRaises(type(error)), Supervisor(self.directory) as supervisor:
                    process = self.start(supervisor, FOREVER)
                    raise error
                self.assertIsNotNone(process.popen.returncode)

    def test_who_ignores_the_first_signal_gets_the_next(self) -> None:
        with (
            mock.patch("pondage_bench.processes.STOP_SECONDS", 2.0),
            Supervisor(self.directory) as supervisor,
        ):
            stop_signals = (signal.SIGTERM, signal.SIGQUIT)
            process = self.start(supervisor, STUBBORN, stop_signals)
        self.assertEqual(process.popen.returncode, -signal.SIGQUIT)

    def test_a_process_that_ends_by_itself_is_reported_with_its_last_words(self) -> None:
        with Supervisor(self.directory) as supervisor:
            process = supervisor.start(
                "child",
                ["/bin/sh", "-c", "echo bad configuration"],
                log=self.directory / "log",
                as_service=False,
            )
            process.popen.wait(DEADLINE_SECONDS)
            with self.assertRaisesRegex(BenchError, "status 0:\nbad configuration"):
                process.ensure_alive()

    def test_waiting_gives_up_with_the_last_complaint(self) -> None:
        with Supervisor(self.directory) as supervisor:
            process = self.start(supervisor, FOREVER)
            with self.assertRaisesRegex(BenchError, "answered not within 0 s: refused"):
                wait_until("answered", 0.0, lambda: "refused", process)

    def test_a_command_that_fails_is_an_error_with_its_output(self) -> None:
        with Supervisor(self.directory) as supervisor:
            with self.assertRaisesRegex(BenchError, "status 3:\nno space"):
                supervisor.run(["/bin/sh", "-c", "echo no space; exit 3"], timeout=10)
            with self.assertRaisesRegex(BenchError, "took over 0 s"):
                supervisor.run(["/bin/sh", "-c", "exec sleep 600"], timeout=0.2)


class Environments(unittest.TestCase):
    def test_what_would_configure_a_side_is_kept_from_it(self) -> None:
        given = {"PGOPTIONS": "-c fsync=off", "PONDAGE_POOL__MODE": "session", "HOME": "/h"}
        with mock.patch.dict("os.environ", given, clear=True):
            self.assertEqual(environment(), {"HOME": "/h"})


class Ports(unittest.TestCase):
    def test_a_free_port_is_outside_the_range_of_outgoing_connections(self) -> None:
        outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
        self.assertLess(free_port(), max(outgoing, 32000))
