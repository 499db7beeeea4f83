"""Suites of Go's drivers, from their modules, which carry their tests."""

import json
import pathlib
import re
import shutil
import subprocess

from .base import FAILED, PASSED, SKIPPED, Place, Suite, call, environment, install_step

OUTCOMES = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}


class Pgx(Suite):
    name = "pgx"
    version = "v5.12.0"
    about = "pgx's tests"
    module = "github.com/jackc/pgx/v5"
    settings = {"max_prepared_transactions": "10"}
    prepare = [
        "CREATE EXTENSION hstore", "CREATE EXTENSION ltree",
        "CREATE DOMAIN uint64 AS numeric(20,0)",
    ]

    def install(self, home: pathlib.Path) -> None:
        if (home / "built").is_dir():
            return
        told = subprocess.run(
            ["go", "mod", "download", "-json", f"{self.module}@{self.version}"],
            capture_output=True, text=True, check=True, cwd="/",
        )
        tree = home / "unpacked"
        shutil.rmtree(tree, ignore_errors=True)
        # The module cache is read-only.
        install_step(["cp", "-r", json.loads(told.stdout)["Dir"], tree], home)
        install_step(["chmod", "-R", "u+w", tree], home)
        tree.rename(home / "built")

    def run(self, home: pathlib.Path, place: Place, short: bool) -> dict[str, str]:
        results = place.kept / "output.log"
        packages = [".", "./pgconn"] if short else [".", "./pgconn", "./pgxpool", "./stdlib",
                                                    "./pgtype"]
        url = f"host={place.host} port={place.port} user={place.user} dbname={place.database}"
        call(
            ["go", "test", "-json", "-p", "1", "-vet=off", "-timeout", "240s", *packages], results,
            self.seconds, cwd=home / "built",
            env=environment(PGX_TEST_DATABASE=url, PGX_TEST_TCP_CONN_STRING=url, CI=""),
        )
        found = {}
        for line in results.read_text(errors="replace").splitlines():
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("Action") in OUTCOMES and event.get("Test"):
                package = event["Package"].removeprefix(self.module).lstrip("/") or "pgx"
                # Directories for temporary files have another name each time.
                test = re.sub(r"/tmp/[^']*/", "", event["Test"])
                found[f"{package}.{test}"] = OUTCOMES[event["Action"]]
        return found
