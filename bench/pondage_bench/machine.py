"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from .proc import parse_kib_fields

SYNC_SECONDS = 1.0
REPOSITORY = Path(__file__).resolve().parents[2]


def _git(*arguments: str) -> str:
    try:
        told = subprocess.run(
            ["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return told.stdout.strip()


def commit() -> str:
    """The commit of this tree, marked when files differ from it."""
    short = _git("rev-parse", "--short=12", "HEAD")
    if not short:
        return "unknown"
    return short + (" with changes" if _git("status", "--porcelain") else "")


def processor_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def file_system(path: Path) -> str:
    """The type of file system `path` is on: fsync on tmpfs would mean nothing."""
    best = ("", "unknown")
    resolved = str(path.resolve())
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _device, mount, kind = line.split()[:3]
        inside = resolved == mount or resolved.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]


def syncs_per_second(directory: Path) -> float:
    """How often 8 kB can be written to the same place and synced (fdatasync) in a second: what
    bounds a commit, as pg_test_fsync measures it.
    """
    page = bytes(8192)
    with tempfile.TemporaryFile(dir=directory) as file:
        descriptor = file.fileno()
        began = time.monotonic()
        count = 0
        while time.monotonic() - began < SYNC_SECONDS:
            os.pwrite(descriptor, page, 0)
            os.fdatasync(descriptor)
            count += 1
        return count / (time.monotonic() - began)


def describe(data: Path) -> dict[str, str]:
    """For the report's head; `data` is where the database lives."""
    memory = parse_kib_fields(Path("/proc/meminfo").read_text())["MemTotal"]
    load = os.getloadavg()
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "processors": f"{os.cpu_count()} x {processor_model()}",
        "memory": f"{memory / 1024**3:.1f} GiB",
        "kernel": platform.release(),
        "file system": file_system(data),
        "fdatasync of 8 kB": f"{syncs_per_second(data):,.0f} a second",
        "python": platform.python_version(),
        "load average before": f"{load[0]:.2f} {load[1]:.2f} {load[2]:.2f}",
    }
