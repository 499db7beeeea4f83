"""What every suite has: how it is installed, how it is run, and how its results are read."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import xml.etree.ElementTree as xml

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

# What would configure a driver or Pondage behind the suite's back.
CONFIGURING = ("PG", "PONDAGE", "DATABASE_URL")
INSTALL_SECONDS = 1200


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a run finds its server, and where it may write."""

    host: str
    port: int
    user: str
    database: str
    # The server's own socket directory and port: for what a suite does to the server itself.
    server_directory: pathlib.Path
    server_port: int
    bindir: pathlib.Path
    # The service user owns it, and it is gone after the run.
    directory: pathlib.Path
    # What stays: logs and diffs.
    kept: pathlib.Path
    # Where the network is bad: Pondage's host.
    hosts: object = None


class Suite:
    """One suite; results are `{test: passed|failed|skipped}`."""

    name = ""
    version = ""
    about = ""
    # What the server needs beyond its defaults.
    settings: dict[str, str] = {}
    # SQL that makes ready what a suite expects to find, run before it in `postgres`.
    prepare: list[str] = []
    database = "suite"
    # Who has to prove itself to the server, or to Pondage; others need not. And with what.
    hba: list[str] = []
    users: dict[str, str] = {}
    # In which modes of pools it means something.
    modes: tuple[str, ...] = ("session", "transaction")
    # A run that takes longer hangs.
    seconds = 900

    def install(self, home: pathlib.Path) -> None:
        """Downloads and builds below `home`, once."""
        raise NotImplementedError

    def bindir(self, home: pathlib.Path) -> pathlib.Path | None:
        """Where the server's programs are, when it has to be another than the installed."""
        return None

    def run(self, home: pathlib.Path, place: Place, short: bool) -> dict[str, str]:
        """Runs everything, or the short selection that `make test` has time for."""
        raise NotImplementedError


def environment(**more: object) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(CONFIGURING)}
    return kept | {name: str(value) for name, value in more.items()}


def call(command: list, log: pathlib.Path, seconds: float, **how) -> int | None:
    """Runs in a group of its own, which is ended as a whole when time is over: then None."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True, **how,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def install_step(command: list, home: pathlib.Path, **how) -> None:
    """A step of an installation; SystemExit with the end of what it said when it fails."""
    home.mkdir(parents=True, exist_ok=True)
    log = home / "install.log"
    if call(command, log, INSTALL_SECONDS, **how) != 0:
        said = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise SystemExit(f"`{' '.join(map(str, command))}` failed:\n{said}")


def from_junit(path: pathlib.Path) -> dict[str, str]:
    """Results in JUnit's XML, as pytest and Surefire write them."""
    found: dict[str, str] = {}
    for case in xml.parse(path).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = FAILED if kinds & {"failure", "error"} else \
            SKIPPED if "skipped" in kinds else PASSED
        name = f"{case.get('classname')}.{case.get('name')}"
        # A test with several lines, as for an error in its clean-up, failed if one of them did.
        if found.get(name) != FAILED:
            found[name] = outcome
    return found
