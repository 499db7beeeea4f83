"""The unit for systemd: that systemd takes it, how exposed it is, and that the program can work
under it."""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
UNIT = ROOT / "packaging/pondage.service"
PROGRAM = pathlib.Path(os.environ["PROGRAM"]).resolve()
ANALYZE = shutil.which("systemd-analyze")
PATIENCE = 60
# Of 10, as `systemd-analyze security` counts: 1.7 with what is in the unit. What is left are the
# network, /tmp and the users of others, which a gateway needs.
EXPOSURE_MAX = 1.8

URL = "postgres://demo:demo@127.0.0.1:{}/{}"


def text(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, **options)
    return done.returncode, done.stdout


@unittest.skipUnless(ANALYZE, "needs systemd-analyze (Debian: apt-get install systemd)")
class Unit(unittest.TestCase):
    def test_systemd_takes_it(self):
        with tempfile.TemporaryDirectory() as directory:
            unit = pathlib.Path(directory) / UNIT.name
            # The program is there once the package is installed.
            said = UNIT.read_text().replace("/usr/bin/pondage ", f"{PROGRAM} ")
            unit.write_text(said)
            code, told = text(ANALYZE, "verify", "--man=no", unit)
            self.assertEqual((code, told), (0, ""))
            # It would tell.
            unit.write_text(said.replace("RestartSec=1", "RestartSec=soon"))
            self.assertIn("Failed to parse", text(ANALYZE, "verify", "--man=no", unit)[1])

    def test_it_exposes_little(self):
        code, told = text(ANALYZE, "security", "--offline=true", f"--threshold={int(EXPOSURE_MAX * 10)}", UNIT)
        if "unrecognized option" in told:
            self.skipTest("this systemd-analyze looks at running services only")
        self.assertEqual(code, 0, told)
        self.assertRegex(told, r"Overall exposure level for pondage.service: \d")

    def test_no_restart_is_tried_where_none_can_help(self):
        said = dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if re.match(r"\w+=", line))
        codes = said["RestartPreventExitStatus"].split()
        for arguments, code in [(["--wrong"], "2"), (["serve", "-c", "/nonexistent/pondage.toml"], "78")]:
            self.assertEqual(str(text(PROGRAM, *arguments)[0]), code, arguments)
            self.assertIn(code, codes)
        # Somebody else may leave the address.
        self.assertNotIn("77", codes)
        self.assertEqual(said["KillSignal"], "SIGINT")
        timeout = re.search(r"`shutdown_timeout` \| [^|]+\| `\"(\d+)s\"`", (ROOT / "docs/configuration.md").read_text())
        self.assertLess(int(timeout[1]), int(said["TimeoutStopSec"]))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def postgres(program):
    """A program of PostgreSQL's; none if it is not there."""
    places = sorted(pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    return places[-1] if places else shutil.which(program)


def starts(process, port):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise AssertionError(f"it ended with {process.returncode}")
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
        except OSError:
            time.sleep(0.1)
    raise AssertionError("it does not begin to serve")


@unittest.skipUnless(ANALYZE and shutil.which("cc"), "needs systemd-analyze and a C compiler")
@unittest.skipUnless(postgres("psql") and postgres("pgbench"), "needs psql and pgbench")
class Sandbox(unittest.TestCase):
    """A demo's PostgreSQL; in front of it a gateway under the unit's filter of system calls."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        if subprocess.run(self.sandboxed("true")).returncode != 0:
            self.skipTest("this kernel takes no filter")

    def sandboxed(self, *command):
        return [sys.executable, HERE / "sandbox.py", UNIT, *command]

    def begin(self, *command, port):
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, process.pid, process)
        starts(process, port)
        return process

    @staticmethod
    def end(pid, process=None):
        try:
            os.kill(pid, signal.SIGINT)
        except ProcessLookupError:
            return
        if process:
            process.wait(PATIENCE)

    def sql(self, port, database, *commands):
        flags = [part for command in commands for part in ("-c", command)]
        code, told = text(postgres("psql"), "-XAt", URL.format(port, database), *flags)
        self.assertEqual(code, 0, told)
        return told

    def test_what_is_not_allowed_ends_a_process(self):
        for command in ["socket.socket(socket.AF_PACKET)", "mmap.mmap(-1, 4096, prot=7)", "os.chroot('/')",
                        "os.nice(1)"]:
            told = subprocess.run(self.sandboxed(sys.executable, "-c", f"import os, mmap, socket; {command}"))
            self.assertEqual(told.returncode, -signal.SIGSYS, command)

    def test_the_program_works_under_it(self):
        door, http = free_port(), free_port()
        self.begin(PROGRAM, "demo", "--no-load", "--listen", f"127.0.0.1:{door}", "--http", f"127.0.0.1:{http}",
                   "--redis", "off", port=http)
        row = self.sql(door, "pondage", "SHOW DATABASES").splitlines()
        server = next(line.split("|") for line in row if line.startswith("demo|"))
        place = self.directory.name
        port, http, redis = free_port(), free_port(), free_port()
        config = pathlib.Path(place) / "pondage.toml"
        config.write_text(f"""
            [listen]
            postgres = ["127.0.0.1:{port}", "unix:{place}"]
            http = "127.0.0.1:{http}"
            redis = "127.0.0.1:{redis}"
            [runtime]
            control_socket = "{place}/control"
            workers = 2
            [auth]
            admin_users = ["demo"]
            [cache]
            mode = "auto"
            [redis]
            default_user = "demo"
            [telemetry]
            log_file = "{place}/log"
            [users.demo]
            password = "demo"
            [databases.demo]
            host = "{server[1]}"
            port = {server[2]}
            user = "demo"
            password = "demo"
            """)
        gateway = self.begin(*self.sandboxed(PROGRAM, "serve", "-c", config), port=http)
        self.load(port)
        self.sql(port, "pondage", "RELOAD", "SHOW ADVICE", "PAUSE", "RESUME", "RECONNECT")
        with urllib.request.urlopen(f"http://127.0.0.1:{http}/metrics") as page:
            told = page.read().decode()
        self.assertRegex(told, r"process_start_time_seconds [1-9]")
        with socket.create_connection(("127.0.0.1", redis)) as client:
            client.sendall(b"AUTH demo demo\r\nSET a 1\r\nEVAL 'return 7' 0\r\nGET a\r\n")
            heard = b""
            while heard.count(b"\r\n") < 5:
                part = client.recv(4096)
                self.assertTrue(part, heard)
                heard += part
            self.assertEqual(heard, b"+OK\r\n+OK\r\n:7\r\n$1\r\n1\r\n")
        # The new process is one of it, too.
        code, told = text(PROGRAM, "upgrade", "-c", config)
        self.assertEqual(code, 0, told)
        new = int(re.match(r"process (\d+) serves now", told)[1])
        self.addCleanup(self.end, new)
        self.assertEqual(gateway.wait(PATIENCE), 0)
        self.load(port)
        status = pathlib.Path(f"/proc/{new}/status").read_text()
        self.assertRegex(status, r"Seccomp:\t2\n")

    def load(self, port):
        """Every way of a statement, with bodies of functions that another process parses."""
        self.sql(port, "demo",
                 "CREATE TABLE IF NOT EXISTS shelf(id int PRIMARY KEY, n int)",
                 "INSERT INTO shelf SELECT g, 0 FROM generate_series(1, 9) g ON CONFLICT DO NOTHING",
                 "CREATE OR REPLACE PROCEDURE move(p int) LANGUAGE plpgsql AS "
                 "'BEGIN UPDATE shelf SET n = n + 1 WHERE id = p; END'",
                 "CREATE TEMP TABLE own AS SELECT * FROM shelf", "COPY own TO STDOUT")
        script = pathlib.Path(self.directory.name) / "script.sql"
        script.write_text("\\set id random(1, 9)\nSELECT n FROM shelf WHERE id = :id;\nCALL move(:id);\n")
        code, told = text(postgres("pgbench"), "-n", "-c", "8", "-T", "3", "-M", "prepared", "-f", script,
                          URL.format(port, "demo"))
        self.assertEqual(code, 0, told)
        self.assertRegex(told, r"number of failed transactions: 0 ")


if __name__ == "__main__":
    unittest.main()
