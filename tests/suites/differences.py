#!/usr/bin/env python3
"""Runs suites of PostgreSQL and of its drivers directly and through Pondage, and compares.

    differences.py [SUITE ...] [--mode session] [--mode transaction] [--short] [--slow] [--page FILE]

The suites come from the package registries, in pinned versions, and are installed below `--out`.
Each run has a PostgreSQL of its own. Every test whose outcome through Pondage is not that of the
direct run has to be named in `differences.txt` with its reason, and every test that is named
there has to differ. Ends with status 1 when that is not so.
"""

import argparse
import json
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

import drivers
import report
import skipped
import stage
from drivers.base import FAILED, PASSED, SKIPPED

HERE = pathlib.Path(__file__).parent.resolve()
NAME = re.compile(r"^(?P<suite>\S+) (?P<mode>session|session-once|transaction)(?P<maybe>\??): (?P<test>.+)$")
ABSENT = "absent"


class Expected:
    """Lines of `SUITE MODE: TEST -- reason`; with `MODE?` the test may also come out alike.

    There a name that ends with `*` stands for all that begin so.
    """

    def __init__(self, path: pathlib.Path, suites: set[str]):
        self.tests: dict[tuple[str, str], dict[str, bool]] = {}
        for what, _ in skipped.read(path):
            match = NAME.match(what)
            if not match or match["suite"] not in suites:
                raise skipped.Unreadable(f"{path}: needs `SUITE MODE: TEST`: {what!r}")
            listed = self.tests.setdefault((match["suite"], match["mode"]), {})
            listed[match["test"]] = bool(match["maybe"])

    @staticmethod
    def names(listed: dict[str, bool], test: str) -> bool:
        return test in listed or any(
            maybe and name.endswith("*") and test.startswith(name[:-1])
            for name, maybe in listed.items()
        )

    def check(self, suite: str, mode: str, direct: dict, through: dict, whole: bool) -> list[str]:
        """What speaks against the list. In a part of a suite fewer tests differ."""
        listed = self.tests.get((suite, mode), {})
        wrong = []
        certain = {test for test, maybe in listed.items() if whole and not maybe}
        for test in sorted(direct.keys() | through.keys() | certain):
            a, b = direct.get(test, ABSENT), through.get(test, ABSENT)
            if a != b and not self.names(listed, test):
                wrong.append(f"{suite} {mode}: {test}: {a} directly, {b} through Pondage")
            elif whole and a == b and listed.get(test) is False:
                wrong.append(f"{suite} {mode}: {test}: listed, and {a} in both")
        return wrong


def run(suite, side: str, arguments) -> dict[str, str]:
    """Runs one suite on one side, and prints how it went."""
    kept = arguments.out / "logs" / suite.name / side
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    began = time.monotonic()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="suites-"))
    directory.chmod(0o755)
    try:
        home = arguments.out / suite.name
        with stage.place(suite, side, home, directory / "run", kept, arguments.slow) as place:
            results = suite.run(home, place, arguments.short)
            for log in (directory / "run").glob("postgres/log"):
                shutil.copy(log, kept / "postgres.log")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    (kept / "results.json").write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    row = count(results)
    print(f"{suite.name} {side}: {row['passed']} passed, {row['failed']} failed, "
          f"{row['skipped']} skipped, {time.monotonic() - began:.0f} s", flush=True)
    return results


def count(results: dict[str, str]) -> dict[str, int]:
    outcomes = list(results.values())
    return {name: outcomes.count(name) for name in (PASSED, FAILED, SKIPPED)}


def main() -> int:
    # As an interrupt: what was started is ended, and its directories are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    suites = drivers.all_suites()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", nargs="*", help=f"of {', '.join(suites)}; without: all")
    parser.add_argument("--mode", action="append", choices=stage.SIDES[1:])
    parser.add_argument("--short", action="store_true", help="the selection that make test runs")
    parser.add_argument("--slow", action="store_true",
                        help="with Pondage on a host of its own, and a bad network between")
    parser.add_argument("--differences", type=pathlib.Path, default=HERE / "differences.txt")
    parser.add_argument("--out", type=pathlib.Path, default=stage.ROOT / "target/suites")
    parser.add_argument("--page", help="a page whose table to replace")
    arguments = parser.parse_args()
    arguments.out = arguments.out.resolve()
    unknown = set(arguments.suite) - set(suites)
    if unknown:
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    if arguments.slow and (missing := stage.hosts.missing()):
        parser.error(f"there can be no bad network here: {missing}")
    expected = Expected(arguments.differences, set(suites))
    wrong, rows, ran = [], [], 0
    chosen = {name: suites[name] for name in arguments.suite or suites}
    for name, suite in chosen.items():
        # All at first: in a bad network nothing can be downloaded.
        suite.install(arguments.out / name)
    for name, suite in chosen.items():
        direct = run(suite, stage.DIRECT, arguments)
        row = {"suite": name, "version": suite.version, stage.DIRECT: count(direct)}
        if not count(direct)[PASSED]:
            wrong.append(f"{name}: nothing passed in the direct run")
        for mode in (mode for mode in suite.modes if mode in (arguments.mode or suite.modes)):
            through = run(suite, mode, arguments)
            row[mode] = count(through)
            ran += len(through)
            found = expected.check(name, mode, direct, through, not arguments.short)
            wrong += found
            for line in found:
                print(f"  UNEXPLAINED {line}", flush=True)
        rows.append(row)
    report.publish("drivers-suites", table(rows), rows, arguments.out, arguments.page)
    print(f"{ran - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


def table(rows: list[dict]) -> str:
    lines = [f"| suite | version | {' | '.join(stage.SIDES)} |", "|---|---|" + "---:|" * len(stage.SIDES)]
    for row in rows:
        cells = [
            "{passed} / {failed} / {skipped}".format(**row[side]) if side in row else ""
            for side in stage.SIDES
        ]
        lines.append(f"| {row['suite']} | {row['version']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
