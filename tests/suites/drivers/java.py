"""Suites of Java's drivers, from the source distributions in Maven's central repository."""

import pathlib
import shutil

from .base import Place, Suite, call, environment, from_junit, install_step

MAVEN = ["mvn", "--batch-mode", "--no-transfer-progress", "-DskipShadeDependencies=true"]

# What would never end, and why: skipped in the direct run, too.
ENDLESS = {
    "src/test/java/org/postgresql/test/jdbc2/CopyTest.java": (
        "void lockReleaseOnCancelFailure()",
        "it copies until the process ends whose id it was told, which is one of Pondage's",
    ),
}


class Pgjdbc(Suite):
    name = "pgjdbc"
    version = "42.7.4"
    about = "pgjdbc's tests"
    database = "test"
    settings = {"wal_level": "logical", "max_wal_senders": "10", "max_replication_slots": "10",
                "max_prepared_transactions": "64"}
    prepare = ["CREATE ROLE test LOGIN SUPERUSER PASSWORD 'test'", "CREATE EXTENSION hstore"]
    seconds = 1800
    # A round of what a pooler is most likely to get wrong.
    short_tests = ["PreparedStatementTest", "BatchExecuteTest", "CursorFetchTest", "CopyTest",
                   "ServerPreparedStmtTest", "AutoRollbackTestSuite", "StatementTest"]

    def install(self, home: pathlib.Path) -> None:
        if (home / "built").is_dir():
            return
        package = f"org.postgresql:postgresql:{self.version}:tar.gz:jdbc-src"
        home.mkdir(parents=True, exist_ok=True)
        install_step(
            ["mvn", "--batch-mode", "--no-transfer-progress",
             "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
             f"-Dartifact={package}", f"-DoutputDirectory={home}"], home, cwd=home,
        )
        tree = home / "unpacked"
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir()
        packed = home / f"postgresql-{self.version}-jdbc-src.tar.gz"
        install_step(["tar", "-xzf", packed, "-C", tree, "--strip-components=1"], home)
        leave_out(tree)
        install_step([*MAVEN, "-DskipTests", "test-compile"], home, cwd=tree)
        # Fetches what runs the tests, too.
        install_step([*MAVEN, "surefire:test", "-Dtest=ParserTest"], home, cwd=tree)
        tree.rename(home / "built")

    def run(self, home: pathlib.Path, place: Place, short: bool) -> dict[str, str]:
        tree = home / "built"
        (tree / "build.local.properties").write_text("".join(
            f"{name}={value}\n" for name, value in {
                "server": place.host, "port": place.port, "database": place.database,
                "username": "test", "password": "test", "privilegedUser": place.user,
            }.items()
        ))
        reports = tree / "target/surefire-reports"
        shutil.rmtree(reports, ignore_errors=True)
        chosen = [f"-Dtest={','.join(self.short_tests)}"] if short else []
        call(
            [*MAVEN, "--offline", "-Dmaven.test.failure.ignore=true", *chosen, "surefire:test"],
            place.kept / "output.log", self.seconds, cwd=tree, env=environment(),
        )
        found: dict[str, str] = {}
        for report in sorted(reports.glob("TEST-*.xml")):
            found |= from_junit(report)
        return found


def leave_out(tree: pathlib.Path) -> None:
    """Marks what would never end as skipped."""
    for name, (method, why) in ENDLESS.items():
        source = (tree / name).read_text()
        test = f"  @Test\n  {method}"
        if source.count(test) != 1:
            raise SystemExit(f"{name} has no test `{method}`, which was to be left out")
        mark = f'  @org.junit.jupiter.api.Disabled("{why}")\n'
        (tree / name).write_text(source.replace(test, mark + test))
