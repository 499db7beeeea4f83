"""System calls of a gateway per operation, counted by strace in a short round of its own.

strace slows a gateway many times over, so nothing is timed in such a round, and as work piles
up behind a slowed gateway, one that batches shows fewer calls here than at full speed.
Source: strace(1), option -c.
"""

from __future__ import annotations

import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from . import proc
from .processes import Process, Supervisor, wait_until


def available() -> bool:
    return shutil.which("strace") is not None


def parse_counts(text: str) -> dict[str, int]:
    """Calls by name from the table that `strace -c` writes; empty when nothing was called."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        fields = line.split()
        # % time, seconds, usecs/call, calls, [errors], syscall
        if len(fields) in (5, 6) and fields[3].isdigit() and fields[-1] != "total":
            counts[fields[-1]] = counts.get(fields[-1], 0) + int(fields[3])
    return counts


@dataclass
class Counter:
    """strace attached to a process tree. `stop` detaches it and tells the counts."""

    supervisor: Supervisor
    table: Path
    process: Process

    @classmethod
    def attach(cls, supervisor: Supervisor, root: int) -> Counter:
        """Returns when every thread is traced."""
        table = supervisor.directory / f"strace-{root}-{time.monotonic_ns()}"
        log = table.with_suffix(".log")
        pids = proc.tree_pids(root)
        argv: list[str | Path] = ["strace", "-c", "-f", "-o", table]
        for pid in pids:
            argv += ["-p", str(pid)]
        process = supervisor.start(
            "strace", argv, log=log, stop_signals=(signal.SIGINT,), as_service=False
        )

        def untraced() -> str | None:
            missing = [pid for pid in pids if not _traced(pid)]
            return f"processes {missing} are not traced yet" if missing else None

        wait_until("strace attached", 10.0, untraced, process)
        return cls(supervisor, table, process)

    def stop(self) -> dict[str, int]:
        self.supervisor.stop(self.process)
        return parse_counts(self.table.read_text(errors="replace"))


def _traced(pid: int) -> bool:
    """Every thread of `pid` has a tracer; a process that ended needs none."""
    try:
        for status in Path(f"/proc/{pid}/task").glob("*/status"):
            if "\nTracerPid:\t0\n" in status.read_text():
                return False
    except (FileNotFoundError, ProcessLookupError):
        return True
    return True
