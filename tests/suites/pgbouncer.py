#!/usr/bin/env python3
"""Runs PgBouncer's own tests against Pondage under PgBouncer's name.

    pgbouncer.py [--checkout DIR] [--file NAME] [--only EXPRESSION] [--page FILE]

The checkout is the source of PgBouncer 1.25.2, which need not be built; PGBOUNCER_CHECKOUT may
name it. Its tests start what is called `pgbouncer` beside them: here that is Pondage. They start a
PostgreSQL too, so what root runs is run as `postgres`. What pytest needs comes from PyPI, pinned,
into a venv below `--out`. Every test that fails has to be named in `differing-pgbouncer.txt` with
its reason, and every test that is named there has to fail. Ends with status 1 when that is not so.
"""

import argparse
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import venv
import xml.etree.ElementTree as xml

import report
import skipped
from stage import built_pondage

HERE = pathlib.Path(__file__).parent.resolve()
LISTED = HERE / "differing-pgbouncer.txt"

VERSION = "1.25.2"
WANTED = f"""the source of PgBouncer {VERSION} is needed, which is no part of this repository:
    git clone --depth 1 --branch pgbouncer_{VERSION.replace(".", "_")} https://github.com/pgbouncer/pgbouncer
and name it with --checkout, or PGBOUNCER_CHECKOUT in the environment"""

FILES = [
    "admin", "auth", "cancel", "copy", "limits", "load_balance_hosts", "misc", "no_database",
    "no_user", "operations", "peering", "prepared", "replication", "ssl", "timeouts",
]
FILE_SECONDS = 2400
# PgBouncer's own limit is half of it; a machine may be busy.
TEST_SECONDS = 60

# What its build would have said: with TLS, without LDAP.
CONFIGURED = "tls_support = yes\nldap_support = no\n"


def checkout(parser: argparse.ArgumentParser, path: str | None) -> pathlib.Path:
    """Where PgBouncer's source is, of the version that the list is about."""
    if not path:
        parser.error(WANTED)
    found = pathlib.Path(path).resolve()
    configure = found / "configure.ac"
    if not (found / "test/test_no_user.py").is_file() or not configure.is_file():
        parser.error(f"{found} is no checkout of PgBouncer: {WANTED}")
    if f"[{VERSION}]" not in configure.read_text():
        parser.error(f"{found} is of another version: {WANTED}")
    return found


def python(out: pathlib.Path) -> pathlib.Path:
    """The interpreter of a venv that has what the tests need."""
    home = out / "pgbouncer"
    wanted = HERE / "requirements-pgbouncer.txt"
    marker = home / "installed.txt"
    if not marker.is_file() or marker.read_bytes() != wanted.read_bytes():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run(
            [home / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps",
             "--disable-pip-version-check", "-r", wanted], check=True,
        )
        marker.write_bytes(wanted.read_bytes())
    return home / "bin/python"


def tree(source: pathlib.Path, directory: pathlib.Path) -> None:
    """A copy of what the tests need of the checkout, with Pondage in PgBouncer's place."""
    shutil.copytree(source / "test", directory / "test", ignore=shutil.ignore_patterns("Test*"))
    shutil.copytree(source / "include", directory / "include")
    shutil.copy(source / "pyproject.toml", directory)
    (directory / "config.mak").write_text(CONFIGURED)
    shutil.copy(built_pondage(), directory / "pgbouncer")


def service_user() -> list[str]:
    """PostgreSQL does not run as root: who does in that case."""
    if os.geteuid() != 0:
        return []
    pwd.getpwnam("postgres")
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]


def run(arguments, interpreter: pathlib.Path, directory: pathlib.Path, file: str) -> dict:
    """Runs one file; pytest's own output is printed."""
    results = directory / f"{file}.xml"
    bindir = subprocess.run(
        ["pg_config", "--bindir"], check=True, capture_output=True, text=True,
    ).stdout.strip()
    command = [
        *service_user(), interpreter, "-m", "pytest", "-q", "--no-header", "-p",
        "no:cacheprovider", f"--tb={arguments.tb}", "--no-showlocals",
        # A short path: the tests have Unix sockets in it.
        f"--junitxml={results}", f"--timeout={TEST_SECONDS}", f"--basetemp={directory / 't'}",
    ]
    if arguments.only:
        command += ["-k", arguments.only]
    row = {"file": f"test_{file}.py", "passed": 0, "failed": 0, "skipped": 0, "failures": []}
    environment = {
        **os.environ, "PATH": f"{bindir}:{os.environ['PATH']}", "HOME": str(directory),
    }
    try:
        subprocess.run(
            [*command, f"test/test_{file}.py"], cwd=directory, check=False, env=environment,
            timeout=FILE_SECONDS, stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        pass
    if not results.is_file():
        row.update(failed=1, failures=[f"test_{file}.py: ended early"], ended_early=True)
        return row
    # A test may pass and what puts it away fail: two cases of one name, of which the worse counts.
    outcomes = {}
    for case in xml.parse(results).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else \
            "skipped" if "skipped" in kinds else "passed"
        name = f"test_{file}.py::{case.get('name')}"
        outcomes[name] = "failed" if "failed" in (outcome, outcomes.get(name)) else outcome
    for outcome in outcomes.values():
        row[outcome] += 1
    row["failures"] = sorted(name for name, outcome in outcomes.items() if outcome == "failed")
    return row


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=WANTED,
    )
    parser.add_argument("--checkout", default=os.environ.get("PGBOUNCER_CHECKOUT"))
    parser.add_argument("--only", help="pytest's -k")
    parser.add_argument("--file", action="append", choices=FILES, help="only this; repeatable")
    parser.add_argument("--tb", default="native", help="how much pytest tells of a failure")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "../../target/suites")
    parser.add_argument("--page", help="a page whose table to replace")
    arguments = parser.parse_args()
    source = checkout(parser, arguments.checkout)
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.out = arguments.out.resolve()
    interpreter = python(arguments.out)
    files = arguments.file or FILES
    with tempfile.TemporaryDirectory(prefix="pgb-") as made:
        directory = pathlib.Path(made)
        tree(source, directory)
        if service_user():
            subprocess.run(["chown", "-R", "postgres:", directory], check=True)
        rows = [run(arguments, interpreter, directory, file) for file in files]
    listed = {what for what, _ in skipped.read(LISTED)}
    listed = {what for what in listed if what.split("::")[0] in {row["file"] for row in rows}}
    failed = {name for row in rows for name in row["failures"]}
    for name in sorted(failed - listed):
        print(f"FAILED {name}")
    # Of a part of a file nothing can be said.
    alike = set() if arguments.only else listed - failed
    for name in sorted(alike):
        print(f"LISTED, but it passed: {name}")
    text = report.table("file", rows)
    report.publish("pgbouncer-suite", text, rows, arguments.out, arguments.page)
    passed = sum(row["passed"] for row in rows)
    print(f"{passed} passed, {len(failed)} differ, {len(failed - listed)} of them unlisted")
    return 1 if failed - listed or alike or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
