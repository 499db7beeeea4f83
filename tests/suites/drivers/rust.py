"""Suites of Rust's drivers, from their crates, which carry their tests."""

import pathlib
import re
import shutil

from .base import FAILED, PASSED, SKIPPED, Place, Suite, call, environment, install_step

OUTCOMES = {"ok": PASSED, "FAILED": FAILED, "ignored": SKIPPED}
LINE = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", re.M)

# Optional types of other crates that are tried: the newest of each.
FEATURES = ["array-impls", "with-chrono-0_4", "with-serde_json-1", "with-time-0_3", "with-uuid-1"]
DEPENDENCIES = {"chrono-04", "env_logger", "futures-executor", "futures-util", "serde_json-1",
                "time-03", "tokio", "uuid-1"}

FETCH = """\
[package]
name = "fetch"
version = "0.0.0"
edition = "2021"
[lib]
path = "empty.rs"
[dependencies]
tokio-postgres = "={version}"
[workspace]
"""


class TokioPostgres(Suite):
    name = "tokio-postgres"
    version = "0.7.18"
    about = "tokio-postgres's tests"
    database = "postgres"
    prepare = [
        "SET password_encryption TO 'md5'",
        "CREATE ROLE pass_user PASSWORD 'password' LOGIN",
        "CREATE ROLE md5_user PASSWORD 'password' LOGIN",
        "SET password_encryption TO 'scram-sha-256'",
        "CREATE ROLE scram_user PASSWORD 'password' LOGIN",
        "CREATE EXTENSION hstore", "CREATE EXTENSION citext", "CREATE EXTENSION ltree",
    ]
    hba = [
        "host all pass_user 0.0.0.0/0 password", "host all md5_user 0.0.0.0/0 md5",
        "host all scram_user 0.0.0.0/0 scram-sha-256",
    ]
    users = {name: "password" for name in ("pass_user", "md5_user", "scram_user")}

    def install(self, home: pathlib.Path) -> None:
        if (home / "built").is_dir():
            return
        fetch, tree = home / "fetch", home / "unpacked"
        shutil.rmtree(fetch, ignore_errors=True)
        shutil.rmtree(tree, ignore_errors=True)
        fetch.mkdir(parents=True)
        (fetch / "Cargo.toml").write_text(FETCH.format(version=self.version))
        (fetch / "empty.rs").touch()
        install_step(["cargo", "vendor", "--quiet", "packages"], home, cwd=fetch)
        shutil.copytree(fetch / "packages/tokio-postgres", tree)
        manifest = tree / "Cargo.toml"
        manifest.write_text(without_what_is_not_needed(manifest.read_text()) + "\n[workspace]\n")
        for unwanted in ("Cargo.lock", ".cargo-checksum.json"):
            (tree / unwanted).unlink(missing_ok=True)
        for name in ("main", "runtime"):
            tell_where_to_go(tree / f"tests/test/{name}.rs")
        install_step(["cargo", *self.test(), "--no-run"], home, cwd=tree)
        tree.rename(home / "built")

    @staticmethod
    def test() -> list[str]:
        return ["test", "--test", "test", "--features", ",".join(FEATURES),
                "--target-dir", "../target"]

    def run(self, home: pathlib.Path, place: Place, short: bool) -> dict[str, str]:
        results = place.kept / "output.log"
        call(
            ["cargo", *self.test(), "--offline"], results, self.seconds, cwd=home / "built",
            env=environment(SUITE_PORT=place.port),
        )
        found = LINE.findall(results.read_text(errors="replace"))
        return {name: OUTCOMES[outcome] for name, outcome in found}


def without_what_is_not_needed(manifest: str) -> str:
    """Benchmarks, and development's dependencies on old versions of the same crates."""
    sections = re.split(r"^(?=\[)", manifest, flags=re.M)

    def needed(section: str) -> bool:
        name = section.partition("\n")[0].strip("[] ")
        if name.startswith("dev-dependencies."):
            return name.removeprefix("dev-dependencies.") in DEPENDENCIES
        return name != "bench"

    return "".join(filter(needed, sections))


def tell_where_to_go(path: pathlib.Path) -> None:
    """The port of the server is written into these tests."""
    port = '.replace("5433", &std::env::var("SUITE_PORT").unwrap())'
    text, count = re.subn(r'"[^"]*\b5433\b[^"]*"', rf"&*\g<0>{port}", path.read_text())
    if count == 0:
        raise SystemExit(f"{path} names no port: another version?")
    path.write_text(text)
