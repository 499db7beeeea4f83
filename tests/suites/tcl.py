#!/usr/bin/env python3
"""Runs Redis's own suite, which is written in TCL, against Pondage or another server.

    tcl.py --checkout DIR [--address HOST:PORT] [--unit unit/type/list ...] [--page FILE]

The checkout is Redis 7.2 or Valkey 7.2, whose suite is under the BSD licence. Every unit runs in
a process of its own, so that one which the server makes fail at its very beginning does not end
the others. Without an address a demo of Pondage is started; in the server at an address,
everything is deleted.

Ends with status 1 when a test failed that `skipped-tcl.txt` does not name.
"""

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys

import report
import skipped
from subject import subject

HERE = pathlib.Path(__file__).parent

UNITS = [
    "unit/type/string", "unit/type/incr", "unit/type/list", "unit/type/list-2",
    "unit/type/list-3", "unit/type/hash", "unit/type/set", "unit/type/zset",
    "unit/type/stream", "unit/type/stream-cgroups", "unit/keyspace", "unit/scan", "unit/expire",
    "unit/multi", "unit/pubsub", "unit/scripting", "unit/bitops", "unit/bitfield", "unit/sort",
    "unit/dump", "unit/protocol", "unit/introspection", "unit/introspection-2",
    "unit/other", "unit/quit", "unit/querybuf", "unit/hyperloglog",
    "unit/geo", "unit/functions", "unit/tracking", "unit/slowlog", "unit/info-command",
    "unit/pause", "unit/lazyfree", "unit/violations",
]

# A unit without any progress for so long hangs; none takes as long as the second. A test may
# write fifty thousand times and wait for each commit.
SILENCE_SECONDS = 300
UNIT_SECONDS = 900

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
OUTCOME = re.compile(r"^\[(ok|err|skip|ignore|exception|TIMEOUT)\]: (.*)$")


@dataclasses.dataclass
class Result:
    unit: str
    passed: int = 0
    skipped: int = 0
    # What failed, with the lines that say why.
    failed: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    ended_early: bool = False

    def row(self) -> dict:
        return {
            "file": self.unit, "passed": self.passed, "failed": len(self.failed),
            "skipped": self.skipped, "failures": [name for name, _ in self.failed],
            "ended_early": self.ended_early,
        }


class SkipList:
    """`tag NAME -- why`, `unit: test -- why` or `unit: /expression -- why`, `unit -- why`."""

    def __init__(self, path: pathlib.Path):
        self.tags: list[str] = []
        self.units: set[str] = set()
        self.tests: dict[str, list[str]] = {}
        for what, _ in skipped.read(path):
            unit, colon, test = what.partition(": ")
            if what.startswith("tag "):
                self.tags.append(what.removeprefix("tag "))
            elif colon:
                self.tests.setdefault(unit, []).append(test)
            else:
                self.units.add(what)
        unknown = (self.units | set(self.tests)) - set(UNITS)
        if unknown:
            raise skipped.Unreadable(f"{path}: no such unit: {sorted(unknown)}")


def run(checkout: pathlib.Path, address: str, unit: str, skips: SkipList) -> Result:
    """Runs one unit, and prints how many tests passed and what failed."""
    host, _, port = address.rpartition(":")
    command = [
        "./runtest", "--host", host, "--port", port, "--single", unit, "--durable",
        "--no-latency", "--ignore-encoding", "--ignore-digest", "--timeout", str(SILENCE_SECONDS),
    ]
    if skips.tags:
        command += ["--tags", " ".join(f"-{tag}" for tag in skips.tags)]
    for test in skips.tests.get(unit, []):
        command += ["--skiptest", test]
    try:
        done = subprocess.run(
            command, cwd=checkout, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=UNIT_SECONDS, check=False,
        )
        output, hangs = done.stdout, False
    except subprocess.TimeoutExpired as error:
        output, hangs = error.stdout or b"", True
    result = read(unit, output.decode(errors="replace"), hangs)
    early = ", ended early" if result.ended_early else ""
    print(
        f"{unit}: {result.passed} passed, {len(result.failed)} failed, "
        f"{result.skipped} skipped{early}", flush=True,
    )
    for name, why in result.failed:
        print(f"  FAILED {unit}: {name}\n    " + why.replace("\n", "\n    "), flush=True)
    return result


def read(unit: str, output: str, hangs: bool) -> Result:
    """Counts what `runtest` printed."""
    result = Result(unit, ended_early=hangs or "The End" not in output)
    why: list[str] | None = None
    text, _, _ = COLOUR.sub("", output).partition("The End")
    for line in text.splitlines():
        match = OUTCOME.match(line)
        if not match:
            if why is not None:
                why.append(line)
            continue
        kind, rest = match.groups()
        why = None
        if kind == "ok":
            result.passed += 1
        elif kind in ("skip", "ignore"):
            result.skipped += 1
        else:
            name = rest.split(" in tests/")[0]
            why = []
            result.failed.append((name, why))
            result.ended_early |= kind != "err"
    result.failed = [(name, "\n".join(lines[:12])) for name, lines in result.failed]
    if result.ended_early and not result.failed:
        last = [line for line in text.splitlines() if line.strip()][-6:]
        result.failed.append(("the unit ended early", "\n".join(last)))
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", type=pathlib.Path, required=True)
    parser.add_argument("--address", metavar="HOST:PORT")
    parser.add_argument("--unit", action="append", choices=UNITS, help="only this; repeatable")
    parser.add_argument("--skips", type=pathlib.Path, default=HERE / "skipped-tcl.txt")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "../../target/suites")
    parser.add_argument("--page", help="a page whose table to replace")
    arguments = parser.parse_args()
    if not (arguments.checkout / "runtest").is_file():
        parser.error(f"{arguments.checkout} is no checkout of Redis: it has no `runtest`")
    skips = SkipList(arguments.skips)
    units = [unit for unit in arguments.unit or UNITS if unit not in skips.units]
    with subject(arguments.address) as address:
        results = [run(arguments.checkout, address, unit, skips) for unit in units]
    rows = [result.row() for result in results]
    report.publish("redis-suite", report.table("unit", rows), rows, arguments.out, arguments.page)
    failed = sum(len(result.failed) for result in results)
    passed = sum(result.passed for result in results)
    print(f"{passed} passed, {failed} failed, {sum(r.skipped for r in results)} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
