"""Starting processes so that every one of them is stopped again, whatever happens."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from .machine import REPOSITORY

STOP_SECONDS = 20.0
LOG_TAIL_LINES = 12
CONFIGURING_PREFIXES = ("PG", "PONDAGE", "DATABASE_URL")
INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
SERVICE_USERS = ("postgres", "nobody")
# Below the kernel's usual range of outgoing ports, so that a load that reconnects thousands of
# times a second never takes the port a side is about to listen on.
PORT_RANGE = range(20000, 32000)


class BenchError(Exception):
    """A failure with a message for people; it fails a side or the whole run, never silently."""


def environment() -> dict[str, str]:
    """This process's, without what would configure PostgreSQL's programs or a gateway."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(CONFIGURING_PREFIXES)
    }


@dataclass(frozen=True)
class ServiceUser:
    """Who the database and the gateways run as. PostgreSQL and PgBouncer refuse root."""

    name: str
    uid: int
    gid: int


def service_user() -> ServiceUser | None:
    """None when this process is not root: then everything runs as the user who started it."""
    if os.geteuid() != 0:
        return None
    for name in SERVICE_USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServiceUser(name, entry.pw_uid, entry.pw_gid)
    raise BenchError(f"started as root, and no user {' or '.join(SERVICE_USERS)} to drop to")


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on now."""
    for port in random.sample(PORT_RANGE, 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise BenchError(f"no free port of 127.0.0.1 found in {PORT_RANGE}")


def tail(log: Path) -> str:
    """The last lines of a log, for an error message."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-LOG_TAIL_LINES:])


@dataclass
class Process:
    """A process of ours that runs in the background, its output in `log`."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path
    stop_signals: tuple[signal.Signals, ...]

    @property
    def pid(self) -> int:
        return self.popen.pid

    def ensure_alive(self) -> None:
        """Raises BenchError with the end of its log when it has ended."""
        code = self.popen.poll()
        if code is not None:
            raise BenchError(f"{self.name} ended with status {code}:\n{tail(self.log)}")

    def stop(self) -> None:
        """Asks with each stop signal in turn, then kills. Only ever this process, by its id."""
        for number in (*self.stop_signals, signal.SIGKILL):
            if self.popen.poll() is not None:
                return
            self.popen.send_signal(number)
            try:
                self.popen.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                continue


@dataclass
class Supervisor:
    """Owns a temporary directory and every background process; leaving it stops and removes all.

    Use as a context manager. Children are put in sessions of their own, so that a Ctrl-C of the
    terminal reaches only the runner, which then stops them in the reverse order of their start.
    """

    directory: Path
    user: ServiceUser | None = field(default_factory=service_user)
    _running: list[Process] = field(default_factory=list)

    def __enter__(self) -> Supervisor:
        self.directory.mkdir(mode=0o755, parents=True, exist_ok=False)
        self.give(self.directory)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A second Ctrl-C must not leave half of them running.
        before = {number: signal.signal(number, signal.SIG_IGN) for number in INTERRUPTS}
        try:
            for process in reversed(self._running):
                process.stop()
            shutil.rmtree(self.directory, ignore_errors=True)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def give(self, path: Path) -> None:
        """Makes the service user the owner of `path`."""
        if self.user is not None:
            os.chown(path, self.user.uid, self.user.gid)

    def subdirectory(self, name: str) -> Path:
        """A new directory that the service user can write."""
        path = self.directory / name
        path.mkdir()
        path.chmod(0o755)
        self.give(path)
        return path

    def write(self, path: Path, text: str) -> None:
        """A file that the service user owns."""
        path.write_text(text)
        self.give(path)

    def start(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        log: Path,
        stop_signals: tuple[signal.Signals, ...] = (signal.SIGTERM,),
        as_service: bool = True,
    ) -> Process:
        """Starts `argv` in the background, as the service user unless told otherwise."""
        user = self.user if as_service else None
        with log.open("ab") as output:
            popen = subprocess.Popen(
                [str(part) for part in argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=environment(),
                start_new_session=True,
                user=user.uid if user else None,
                group=user.gid if user else None,
                extra_groups=[] if user else None,
            )
        process = Process(name, popen, log, stop_signals)
        self._running.append(process)
        return process

    def stop(self, process: Process) -> None:
        process.stop()
        self._running.remove(process)

    def run(self, argv: Sequence[str | Path], *, timeout: float) -> str:
        """Runs `argv` to its end as the service user; its output, or BenchError."""
        command = [str(part) for part in argv]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=environment(),
                timeout=timeout,
                start_new_session=True,
                check=False,
                user=self.user.uid if self.user else None,
                group=self.user.gid if self.user else None,
                extra_groups=[] if self.user else None,
            )
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"`{' '.join(command)}` took over {timeout:.0f} s") from error
        text: str = done.stdout.decode(errors="replace")
        if done.returncode != 0:
            raise BenchError(f"`{' '.join(command)}` gave status {done.returncode}:\n{text}")
        return text


def pondage_binary() -> Path:
    """The one that PONDAGE names, or the release build."""
    given = os.environ.get("PONDAGE")
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return Path(given) if given else target / "release" / "pondage"


def built_pondage() -> Path:
    """As [`pondage_binary`]; ends the program where there is none."""
    found = pondage_binary()
    if not found.is_file():
        raise SystemExit(f"{found} is not there: `make build`, or PONDAGE=/path/to/pondage")
    return found


def stage(binary: Path, directory: Path) -> Path:
    """A copy of `binary` that the service user can run.

    It may stand in a home directory closed to other users, and a build during a long run would
    otherwise replace what is being measured.
    """
    copy = directory / binary.name
    shutil.copyfile(binary, copy)
    copy.chmod(0o755)
    return copy


def wait_until(
    what: str, seconds: float, complaint: Callable[[], str | None], process: Process | None
) -> None:
    """Polls until there is no complaint; the last one becomes the BenchError, as is the end of
    the process that it is about."""
    deadline = time.monotonic() + seconds
    while True:
        if process:
            process.ensure_alive()
        missing = complaint()
        if missing is None:
            return
        if time.monotonic() > deadline:
            log = f"\n{tail(process.log)}" if process else ""
            raise BenchError(f"{what} not within {seconds:.0f} s: {missing}{log}")
        time.sleep(0.02)
