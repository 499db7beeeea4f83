#!/usr/bin/env python3
"""Runs redis-py's own command tests against Pondage or another server.

    redis_py.py --checkout DIR [--address HOST:PORT] [--only EXPRESSION] [--page FILE]

The checkout is redis-py 5.2, whose tests run from their own directory, in RESP2 and in RESP3.
What pytest needs comes from PyPI, pinned, into a venv below `--out`. Without an address a demo of
Pondage is started; in the server at an address, everything is deleted. Ends with status 1 when a
test failed that `skipped-redis-py.txt` does not name.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import venv
import xml.etree.ElementTree as xml

import report
import skipped
from subject import subject

HERE = pathlib.Path(__file__).parent.resolve()

FILES = [
    "tests/test_commands.py", "tests/test_pipeline.py", "tests/test_pubsub.py",
    "tests/test_lock.py", "tests/test_scripting.py", "tests/test_encoding.py",
    "tests/test_monitor.py", "tests/test_function.py", "tests/test_cache.py",
    "tests/test_asyncio/test_commands.py", "tests/test_asyncio/test_pipeline.py",
    "tests/test_asyncio/test_pubsub.py", "tests/test_asyncio/test_lock.py",
    "tests/test_asyncio/test_scripting.py", "tests/test_asyncio/test_encoding.py",
]

# Tests of clusters, modules, replicas, TLS of another kind, and of Azure's log-in.
MARKS = "not onlycluster and not redismod and not replica and not ssl and not cp_integration"

FILE_SECONDS = 600


def python(out: pathlib.Path) -> pathlib.Path:
    """The interpreter of a venv that has what the tests need."""
    home = out / "redis-py"
    wanted = HERE / "requirements-redis-py.txt"
    marker = home / "installed.txt"
    if not marker.is_file() or marker.read_bytes() != wanted.read_bytes():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run(
            [home / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps",
             "--disable-pip-version-check", "-r", wanted], check=True,
        )
        marker.write_bytes(wanted.read_bytes())
    return home / "bin/python"


def run(arguments, address: str, interpreter: pathlib.Path, file: str, protocol: int) -> dict:
    """Runs one file in one protocol; pytest's own output is printed."""
    results = arguments.out / "redis-py.xml"
    results.unlink(missing_ok=True)
    command = [
        interpreter, "-m", "pytest", "-q", "-c", HERE / "redis-py.ini", "--rootdir", ".",
        "--tb=short", f"--junitxml={results}", "-o", "junit_family=xunit1", "-m", MARKS,
        "--protocol", str(protocol), "--redis-url", f"redis://{address}/0",
    ]
    for test, _ in skipped.read(arguments.skips):
        if test.startswith(file):
            command += ["--deselect", test]
    if arguments.only:
        command += ["-k", arguments.only]
    row = {"file": f"{file} (RESP{protocol})", "passed": 0, "failed": 0, "skipped": 0}
    row["failures"] = []
    try:
        subprocess.run(
            [*command, file], cwd=arguments.checkout, check=False, timeout=FILE_SECONDS,
            env={**os.environ, "PYTHONPATH": "."}, stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        pass
    if not results.is_file():
        row.update(failed=1, failures=["the file ended early"], ended_early=True)
        return row
    for case in xml.parse(results).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else \
            "skipped" if "skipped" in kinds else "passed"
        row[outcome] += 1
        if outcome == "failed":
            row["failures"].append(f"{case.get('classname')}.{case.get('name')}")
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", type=pathlib.Path, required=True)
    parser.add_argument("--address", metavar="HOST:PORT")
    parser.add_argument("--only", help="pytest's -k")
    parser.add_argument("--file", action="append", choices=FILES, help="only this; repeatable")
    parser.add_argument("--skips", type=pathlib.Path, default=HERE / "skipped-redis-py.txt")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "../../target/suites")
    parser.add_argument("--page", help="a page whose table to replace")
    arguments = parser.parse_args()
    if not (arguments.checkout / "tests/test_commands.py").is_file():
        parser.error(f"{arguments.checkout} is no checkout of redis-py")
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.out = arguments.out.resolve()
    interpreter = python(arguments.out)
    files = arguments.file or FILES
    with subject(arguments.address) as address:
        rows = [
            run(arguments, address, interpreter, file, protocol)
            for protocol in (2, 3) for file in files
        ]
    for row in rows:
        for name in row["failures"]:
            print(f"FAILED {row['file']}: {name}")
    text = report.table("file", rows)
    report.publish("redis-py-suite", text, rows, arguments.out, arguments.page)
    passed, failed, left = (sum(row[name] for row in rows) for name in ("passed", "failed", "skipped"))
    print(f"{passed} passed, {failed} failed, {left} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
