"""What a reader of the manual has: hosts, files below /etc, a PostgreSQL, and Pondage.

The names and ports that the manual says are really there, so that its commands run as they stand:
this process and those it starts have a network and a view of /etc and /run of their own.
"""

import contextlib
import ctypes
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

from pages import ROOT

sys.path.insert(0, str(ROOT / "bench"))

from pondage_bench.pgwire import PgError  # noqa: E402
from pondage_bench.postgres import Cluster  # noqa: E402
from pondage_bench.processes import (  # noqa: E402
    BenchError, Process, Supervisor, built_pondage, environment, stage, tail, wait_until,
)

CLONE_NEWNS, CLONE_NEWNET = 0x0002_0000, 0x4000_0000  # linux/sched.h
PROGRAMS = ("ip", "mount", "redis-cli", "curl", "openssl")
PASSWORDS = ("admin", "secret"), ("app", "secret"), ("demo", "demo")
START_SECONDS = 60.0
COMMAND_SECONDS = 120.0
# Names that the manual gives to hosts; all are this one.
NAMES = ("db.example", "db1.example", "db2.example", "pooler-2", "pooler-3")
SETTINGS = {
    "listen_addresses": "*", "max_connections": "150", "wal_level": "logical",
    "max_wal_senders": "20", "max_replication_slots": "20",
}
HBA = """\
local all all trust
host all postgres 127.0.0.1/32 trust
host all all all scram-sha-256
host replication all all scram-sha-256
"""


def missing() -> str | None:
    """What this machine has not, or does not allow."""
    if os.geteuid() != 0:
        return "hosts and files of one's own take root"
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, "-c", "import stage; stage.furnish()"],
        capture_output=True, text=True, cwd=pathlib.Path(__file__).parent, check=False,
    )
    said = tried.stderr.strip().splitlines() or ["refused"]
    return f"no namespaces, or no overlays in them: {said[-1]}" if tried.returncode else None


def leave() -> None:
    """From now on nothing that this process or its children do is seen by anybody else."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    furnish()


def furnish() -> None:
    """Has a network, /run and /etc of its own, where this process has its own namespaces."""
    def run(*words: str) -> None:
        subprocess.run(words, check=True)

    run("ip", "link", "set", "lo", "up")
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    for name in ("upper", "work", "postgresql", "pondage"):
        pathlib.Path("/run", name).mkdir()
    os.chmod("/run/postgresql", 0o1777)
    run("mount", "-t", "overlay", "overlay", "-o",
        "lowerdir=/etc,upperdir=/run/upper,workdir=/run/work", "/etc")
    for name in ("pondage", "pgbouncer"):
        pathlib.Path("/etc", name).mkdir(exist_ok=True)
    pathlib.Path("/etc/hosts").write_text(f"127.0.0.1 localhost {' '.join(NAMES)}\n")


CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=pondage"
    " -keyout /etc/pondage/server.key -out /etc/pondage/server.crt"
)


class Failed(Exception):
    """A command that did not do what the manual says."""


class Stage:
    def __init__(self, supervisor: Supervisor, binary: pathlib.Path):
        self.supervisor = supervisor
        self.programs = supervisor.subdirectory("bin")
        self.pondage = stage(binary, self.programs)
        supervisor.write(supervisor.directory / "hba.conf", HBA)
        subprocess.run(CERTIFICATE.split(), check=True, capture_output=True)
        settings = SETTINGS | {"hba_file": str(supervisor.directory / "hba.conf")}
        self.cluster = Cluster(supervisor, settings=settings, port=5432)
        self.cluster.start()
        self.home = supervisor.directory
        self.gateway: Process | None = None
        #: What runs: the words that it was started by.
        self.running = ""
        self.started = 0
        #: Of the reader's shell.
        self.variables: dict[str, str] = {}
        self._background: list[Process] = []

    @contextlib.contextmanager
    def page(self) -> Iterator[None]:
        """A home, databases and roles that no other page has touched."""
        with self.cluster.client() as client:
            for (name,) in client.query(MADE):
                client.query(f'DROP DATABASE "{name}" WITH (FORCE)')
            for statement in AGAIN:
                client.query(statement)
        self.home = self.supervisor.subdirectory(f"home-{time.monotonic_ns()}")
        passwords = self.home / ".pgpass"
        passwords.write_text("".join(f"*:*:*:{name}:{word}\n" for name, word in PASSWORDS))
        passwords.chmod(0o600)
        try:
            yield
        finally:
            for process in self._background:
                self.supervisor.stop(process)
            self._background.clear()
            self.stop()

    def background(self, command: str) -> None:
        """Runs to the page's end."""
        log = self.supervisor.directory / "background.log"
        self._background.append(self.supervisor.start(command, command.split(), log=log))

    def sql(self, text: str, database: str = "app", user: str = "postgres") -> None:
        done = self.run(self.psql(database, user), text)
        if done.returncode != 0:
            raise Failed(done.stdout)

    def psql(self, database: str, user: str, door: int = 5432) -> list[str]:
        return ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(door),
                "-U", user, "-d", database]

    def environment(self) -> dict[str, str]:
        path = f"{self.programs}:{self.cluster.bindir}:{os.environ['PATH']}"
        return environment() | {
            "HOME": str(self.home), "PATH": path, "LC_ALL": "C.UTF-8",
            "PGCONNECT_TIMEOUT": "20", "PSQL_PAGER": "", **self.variables,
        }

    def run(self, words: list[str], said: str = "") -> subprocess.CompletedProcess[str]:
        """To its end; what it writes to either output is in `stdout`, as it came."""
        try:
            return subprocess.run(
                words, input=said, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                cwd=self.home, env=self.environment(), timeout=COMMAND_SECONDS, check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(f"still runs after {COMMAND_SECONDS:.0f} s: {error.stdout}") from error

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        return self.run(["bash", "-euo", "pipefail", "-c", command])

    def serve(self, command: str, ready: int = 6432) -> None:
        """Starts Pondage by a command of a shell, in place of the one that runs."""
        former = self.gateway if " -R" in command else None
        if former is None:
            self.stop()
        self.started += 1
        log = self.supervisor.directory / f"pondage-{self.started}.log"
        words = ["env", *(f"{name}={value}" for name, value in self.environment().items()),
                 "bash", "-euc", f"cd {self.home}; exec {command}"]
        self.gateway = self.supervisor.start(
            command, words, log=log, stop_signals=(signal.SIGINT,), as_service=False
        )
        self.running = command

        def complaint() -> str | None:
            try:
                socket.create_connection(("127.0.0.1", ready), 5.0).close()
            except OSError as error:
                return str(error)
            return None if READY.search(log.read_text()) else "it does not say that it is ready"

        try:
            wait_until("it was ready", START_SECONDS, complaint, self.gateway)
        except BenchError as error:
            raise Failed(str(error)) from error

    def stop(self) -> None:
        """Pondage, if it runs; it must end well."""
        process, self.gateway, self.running = self.gateway, None, ""
        if process is None:
            return
        self.supervisor.stop(process)
        if process.popen.returncode != 0:
            raise Failed(f"{process.name}: ended with {process.popen.returncode}\n"
                         f"{tail(process.log)}")
        # One that has taken over by `pondage upgrade` is nobody's child here.
        self.run([*self.psql("pondage", "admin", door=6432), "-c", "SHUTDOWN"])
        wait_until("the doors were closed", START_SECONDS, self._still_open, None)

    def _still_open(self) -> str | None:
        try:
            socket.create_connection(("127.0.0.1", 6432), 5.0).close()
        except OSError:
            return None
        return "port 6432 is open"

    def until_redis_answers(self, user: str) -> None:
        """Its door is open before its tables are there."""
        def complaint() -> str | None:
            said = self.run(["redis-cli", "--no-auth-warning", "-e", "-u",
                             f"redis://{user}@127.0.0.1:6379", "EXISTS", "none"])
            return said.stdout if said.returncode else None

        wait_until("the Redis door answered", START_SECONDS, complaint, self.gateway)

    def terminal(self, command: str) -> None:
        """Runs a program that draws, until it has; then it is told `q`, and must end well."""
        pid, descriptor = pty.fork()
        if pid == 0:
            os.chdir(self.home)
            os.execvpe("bash", ["bash", "-euc", f"exec {command}"],
                       self.environment() | {"TERM": "xterm"})
        drawn = b""
        deadline = time.monotonic() + START_SECONDS
        asked = False
        with contextlib.suppress(OSError):  # the other end is closed when it ends
            while time.monotonic() < deadline:
                if select.select([descriptor], [], [], 1.0)[0]:
                    drawn += os.read(descriptor, 1 << 16)
                elif drawn and not asked:
                    os.write(descriptor, b"q")
                    asked = True
        if time.monotonic() >= deadline:
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(descriptor)
        if status != 0:
            raise Failed(f"ended with {status}: {drawn.decode(errors='replace')[-2000:]}")


# The last line of a start: of Pondage, and of the demo when its lines to try are written.
READY = re.compile(r"event=ready|redis-cli -u")
MADE = "SELECT datname FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres'"
AGAIN = (
    "DO $$ DECLARE r name; BEGIN FOR r IN SELECT rolname FROM pg_roles WHERE NOT rolsuper"
    " AND rolname NOT LIKE 'pg\\_%' LOOP EXECUTE format('DROP OWNED BY %I', r);"
    " EXECUTE format('DROP ROLE %I', r); END LOOP; END $$",
    "CREATE ROLE app LOGIN PASSWORD 'secret'",
    "CREATE DATABASE app OWNER app",
)
