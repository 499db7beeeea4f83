"""CPU time and memory of processes, read from /proc.

CPU time of a tree is that of its live processes plus that of the children each of them has
reaped (`cutime`, `cstime`), so PostgreSQL backends that came and went are counted.
Source: proc(5), /proc/pid/stat, /proc/pid/smaps_rollup, /proc/pid/status, /proc/stat.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
SETTLE_SECONDS = 2.0
SETTLE_STEP_SECONDS = 0.05


@dataclass(frozen=True)
class Stat:
    """One line of /proc/pid/stat; times in clock ticks."""

    pid: int
    comm: str
    ppid: int
    utime: int
    stime: int
    cutime: int
    cstime: int

    @property
    def ticks(self) -> int:
        return self.utime + self.stime + self.cutime + self.cstime


@dataclass(frozen=True)
class Memory:
    """Bytes, summed over processes. `pss` is None where the kernel does not tell."""

    rss: int
    pss: int | None
    peak_rss: int


def parse_stat(text: str) -> Stat:
    """A process may have spaces and parentheses in its name: the last `)` ends it."""
    opening, closing = text.index("("), text.rindex(")")
    fields = text[closing + 1 :].split()
    return Stat(
        pid=int(text[:opening]),
        comm=text[opening + 1 : closing],
        ppid=int(fields[1]),
        utime=int(fields[11]),
        stime=int(fields[12]),
        cutime=int(fields[13]),
        cstime=int(fields[14]),
    )


def parse_kib_fields(text: str) -> dict[str, int]:
    """`Name:   123 kB` lines of smaps_rollup, status or meminfo, as bytes."""
    fields: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0].endswith(":") and words[2] == "kB":
            fields[words[0][:-1]] = int(words[1]) * 1024
    return fields


def parse_busy_ticks(text: str) -> int:
    """Ticks all processors spent on anything but idling and waiting for a disk, from /proc/stat.

    Guest time is already inside user time; time stolen by the hypervisor counts as busy.
    """
    words = text.splitlines()[0].split()
    if words[0] != "cpu":
        raise ValueError("/proc/stat does not begin with the sum of all processors")
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(w) for w in words[1:9])
    return user + nice + system + irq + softirq + steal


def _all_stats() -> dict[int, Stat]:
    stats: dict[int, Stat] = {}
    for name in os.listdir(PROC):
        if not name.isdigit():
            continue
        try:
            stat = parse_stat((PROC / name / "stat").read_text(errors="replace"))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while the directory was read
        stats[stat.pid] = stat
    return stats


def _tree_of(root: int, stats: dict[int, Stat]) -> list[Stat]:
    children: dict[int, list[int]] = {}
    for stat in stats.values():
        children.setdefault(stat.ppid, []).append(stat.pid)
    found: list[Stat] = []
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        if pid in stats:
            found.append(stats[pid])
            waiting.extend(children.get(pid, ()))
    return found


def tree_pids(root: int) -> list[int]:
    """`root` and all that descend from it, as long as they live."""
    return sorted(stat.pid for stat in _tree_of(root, _all_stats()))


def tree_cpu_seconds(root: int) -> float:
    """CPU seconds of the tree since its start, reaped descendants included."""
    return sum(stat.ticks for stat in _tree_of(root, _all_stats())) / TICKS_PER_SECOND


def settle(root: int) -> None:
    """Waits until the tree's set of processes is the same twice in a row.

    Backends whose clients just left are still ending; one that is reaped between two reads of
    /proc would be missed. Gives up after SETTLE_SECONDS, as the error is then small.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    before = tree_pids(root)
    while time.monotonic() < deadline:
        time.sleep(SETTLE_STEP_SECONDS)
        now = tree_pids(root)
        if now == before:
            return
        before = now


def memory_of(pids: Iterable[int]) -> Memory:
    """Raises nothing for processes that ended: they hold no memory."""
    rss = pss = peak = 0
    pss_known = True
    for pid in pids:
        try:
            status = parse_kib_fields((PROC / str(pid) / "status").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue
        rss += status.get("VmRSS", 0)
        peak += status.get("VmHWM", 0)
        try:
            rollup = parse_kib_fields((PROC / str(pid) / "smaps_rollup").read_text())
            pss += rollup["Pss"]
        except (OSError, KeyError):
            pss_known = False
    return Memory(rss, pss if pss_known else None, peak)


def busy_seconds() -> float:
    """CPU seconds the whole machine was busy since it started."""
    return parse_busy_ticks((PROC / "stat").read_text()) / TICKS_PER_SECOND
