"""Pondage on a host of its own, in a network namespace, behind a bad network; see `slow.py`."""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import slow
from pondage_bench.processes import Supervisor, wait_until

HERE = pathlib.Path(__file__).parent.resolve()
START_SECONDS = 30.0
CLONE_NEWNET = 0x4000_0000  # linux/sched.h
PROGRAMS = ("ip", "nsenter", "setpriv", "unshare")
(_, _, GATEWAY), (_, SERVER, _) = slow.LINKS


def missing() -> str | None:
    """What this machine has not, or does not allow; none: there can be hosts."""
    if os.geteuid() != 0:
        return "networks of one's own take root"
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed (Debian: iproute2, util-linux)"
    tried = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", "import slow; slow.interface('try0')"],
        capture_output=True, text=True, cwd=HERE, check=False,
    )
    if tried.returncode != 0:
        said = tried.stderr.strip().splitlines()
        return f"no network namespaces or no /dev/net/tun: {said[-1] if said else 'refused'}"
    return None


_left = False


def leave_network() -> None:
    """From now on this process and those it starts see nothing but each other."""
    global _left
    if _left:
        return
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    _left = True


class Hosts:
    """Clients and PostgreSQL are on this host, Pondage is on the other."""

    def __init__(self, supervisor: Supervisor, kept: pathlib.Path):
        leave_network()
        self.user = supervisor.user
        log = kept / "network.log"
        self.other = supervisor.start(
            "the gateway's host", ["unshare", "--net", "sleep", "infinity"], log=log,
            as_service=False,
        )

        def same() -> str | None:
            own, other = (os.readlink(f"/proc/{pid}/ns/net") for pid in ("self", self.other.pid))
            return "it is this one" if own == other else None

        wait_until("it had a network of its own", START_SECONDS, same, self.other)
        ready = supervisor.directory / "network-ready"
        self.wire = supervisor.start(
            "the network", [sys.executable, HERE / "slow.py", self.other.pid, ready], log=log,
            as_service=False,
        )
        wait_until("packets travelled", START_SECONDS,
                   lambda: None if ready.exists() else "not yet", self.wire)

    def over_there(self, command: list) -> list:
        """What runs it on the other host, as the service user."""
        words = ["nsenter", f"--net=/proc/{self.other.pid}/ns/net"]
        if self.user:
            words += ["setpriv", f"--reuid={self.user.uid}", f"--regid={self.user.gid}",
                      "--clear-groups", "--"]
        return [*words, *command]

    def cut(self) -> None:
        """Nothing arrives any more between Pondage and PostgreSQL."""
        self.wire.popen.send_signal(signal.SIGUSR1)

    def mend(self) -> None:
        self.wire.popen.send_signal(signal.SIGUSR2)
