"""Running one load to its end while accounting the CPU of everybody involved."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import proc
from .processes import BenchError, environment

ERROR_CHARACTERS = 800
BEGUN_STEP_SECONDS = 0.01


@dataclass(frozen=True)
class Cpu:
    """CPU seconds while a load ran, but for `others`."""

    load: float
    gateway: float | None
    database: float
    #: Processors that everything else on this machine kept busy: what disturbs a measurement.
    others: float


@dataclass(frozen=True)
class Measured:
    """How a load went. `elapsed` in seconds, with its own start and end if all is measured."""

    output: str
    elapsed: float
    cpu: Cpu


@dataclass(frozen=True)
class _Reading:
    time: float
    gateway: float | None
    database: float
    busy: float
    own: float

    @classmethod
    def take(cls, gateway: int | None, database: int) -> _Reading:
        return cls(
            time.monotonic(),
            None if gateway is None else proc.tree_cpu_seconds(gateway),
            proc.tree_cpu_seconds(database),
            proc.busy_seconds(),
            time.process_time(),
        )


def run_load(
    argv: Sequence[str | Path],
    *,
    gateway: int | None,
    database: int,
    timeout: float,
    directory: Path,
    begun: str = "",
) -> Measured:
    """Runs `argv` and waits for it; BenchError when it fails or takes over `timeout` seconds.

    `gateway` and `database` are the roots of their process trees. CPU time is counted from when
    `begun` is in the output, if that is given, and of the whole run otherwise.
    """
    command = [str(part) for part in argv]
    with tempfile.TemporaryFile() as output:
        before, skipped = _Reading.take(gateway, database), 0.0
        popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environment(),
            start_new_session=True,
        )
        late = threading.Timer(timeout, popen.kill)
        late.start()
        try:
            if begun and _wait_for(begun.encode(), output.fileno(), popen.pid):
                before = _Reading.take(gateway, database)
                skipped = proc.tree_cpu_seconds(popen.pid)
            # wait4 tells the CPU time of exactly this child and what it waited for.
            _, status, usage = os.wait4(popen.pid, 0)
        except BaseException:
            popen.kill()
            popen.wait()
            raise
        finally:
            late.cancel()
        ended = time.monotonic()
        popen.returncode = os.waitstatus_to_exitcode(status)
        proc.settle(database)
        after = _Reading.take(gateway, database)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if popen.returncode != 0:
        raise BenchError(
            f"`{' '.join(command)}` gave status {popen.returncode}"
            f" after {ended - before.time:.1f} s:\n{text[-ERROR_CHARACTERS:]}"
        )
    load = usage.ru_utime + usage.ru_stime - skipped
    through = (
        None if before.gateway is None or after.gateway is None else after.gateway - before.gateway
    )
    stored = after.database - before.database
    ours = load + (through or 0.0) + stored + after.own - before.own
    others = max(after.busy - before.busy - ours, 0.0) / (after.time - before.time)
    return Measured(text, ended - before.time, Cpu(load, through, stored, others))


def _wait_for(text: bytes, output: int, pid: int) -> bool:
    """Whether it was written before the process ended."""
    while text not in os.pread(output, ERROR_CHARACTERS, 0):
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return False
        time.sleep(BEGUN_STEP_SECONDS)
    return True
