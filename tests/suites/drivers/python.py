"""Suites of Python's drivers, from the source packages of their releases."""

import pathlib
import shutil
import tarfile
import venv

from .base import Place, Suite, call, environment, from_junit, install_step


class FromPypi(Suite):
    package = ""
    requirements: list[str] = []
    # Pure packages run from their source; others from the wheel of the same release.
    install_itself = True

    def install(self, home: pathlib.Path) -> None:
        wanted = "\n".join([f"{self.package}=={self.version}", *self.requirements])
        marker = home / "installed.txt"
        if marker.is_file() and marker.read_text() == wanted:
            return
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home / "venv", with_pip=True)
        pip = [home / "venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
        itself = [f"{self.package}=={self.version}"] if self.install_itself else []
        install_step([*pip, "install", "--quiet", *self.requirements, *itself], home)
        install_step(
            [*pip, "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest",
             home / "source", f"{self.package}=={self.version}"], home,
        )
        [archive] = (home / "source").glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(home / "source", filter="data")
        marker.write_text(wanted)

    def tree(self, home: pathlib.Path) -> pathlib.Path:
        [tree] = (path for path in (home / "source").iterdir() if path.is_dir())
        return tree

    def pytest(self, home: pathlib.Path, place: Place, arguments: list, **how) -> dict[str, str]:
        results = place.kept / "junit.xml"
        call(
            [home / "venv/bin/python", "-m", "pytest", "-q", "--tb=short", "--timeout=30", "-p",
             "no:cacheprovider", f"--junitxml={results}", *arguments],
            place.kept / "output.log", self.seconds, **how,
        )
        return from_junit(results) if results.is_file() else {}


class Asyncpg(FromPypi):
    name = package = "asyncpg"
    version = "0.32.0"
    about = "asyncpg's tests"
    requirements = ["pytest==9.2.0", "pytest-timeout==2.4.0", "uvloop==0.23.0", "distro==1.9.0"]
    settings = {"max_prepared_transactions": "10"}
    short_files = ["test_prepare", "test_cursor", "test_execute", "test_transaction", "test_copy",
                   "test_cache_invalidation", "test_cancellation"]

    def run(self, home: pathlib.Path, place: Place, short: bool) -> dict[str, str]:
        # From a copy without the package itself: the installed one has its compiled parts.
        work = place.directory / "asyncpg"
        shutil.copytree(self.tree(home) / "tests", work / "tests")
        files = [f"tests/{name}.py" for name in self.short_files] if short else ["tests"]
        return self.pytest(
            home, place,
            [*files, "--ignore=tests/test__sourcecode.py", "--ignore=tests/test__environment.py",
             "--ignore=tests/test_adversity.py"],
            cwd=work,
            env=environment(PGHOST=place.host, PGPORT=place.port, PGUSER=place.user,
                            PGDATABASE=place.database),
        )


class Psycopg2(FromPypi):
    name = package = "psycopg2"
    version = "2.9.13"
    about = "psycopg2's tests"
    install_itself = False
    requirements = ["pytest==9.2.0", "pytest-timeout==2.4.0", "psycopg2-binary==2.9.13"]
    settings = {"max_prepared_transactions": "10"}
    prepare = ["CREATE EXTENSION hstore"]

    def run(self, home: pathlib.Path, place: Place, short: bool) -> dict[str, str]:
        work = place.directory / "psycopg2"
        shutil.copytree(self.tree(home) / "tests", work / "tests")
        chosen = ["tests/test_connection.py", "tests/test_transaction.py", "tests/test_copy.py"]
        return self.pytest(
            home, place, chosen if short else ["tests"], cwd=work,
            env=environment(
                PSYCOPG2_TESTDB=place.database, PSYCOPG2_TESTDB_HOST=place.host,
                PSYCOPG2_TESTDB_PORT=place.port, PSYCOPG2_TESTDB_USER=place.user,
                PSYCOPG2_TEST_FAST="1",
            ),
        )


class Sqlalchemy(FromPypi):
    name = package = "sqlalchemy"
    version = "2.1.9"
    about = "SQLAlchemy's tests of its PostgreSQL dialect, and its suite for dialects, by psycopg2"
    requirements = ["pytest==9.2.0", "pytest-timeout==2.4.0", "psycopg2-binary==2.9.13", "asyncpg==0.32.0"]
    settings = {"max_prepared_transactions": "10"}
    prepare = ["CREATE EXTENSION hstore", "CREATE EXTENSION citext", "CREATE SCHEMA test_schema",
               "CREATE SCHEMA test_schema_2"]

    def run(self, home: pathlib.Path, place: Place, short: bool) -> dict[str, str]:
        work = place.directory / "sqlalchemy"
        tree = self.tree(home)
        work.mkdir()
        # The tests load parts of the package from beside themselves.
        for name in ("test", "tools", "lib"):
            shutil.copytree(tree / name, work / name)
        for name in ("setup.cfg", "pyproject.toml"):
            shutil.copy(tree / name, work / name)
        url = f"postgresql+psycopg2://{place.user}@{place.host}:{place.port}/{place.database}"
        chosen = ["test/dialect/postgresql"]
        if not short:
            chosen.append("test/dialect/test_suite.py")
        return self.pytest(
            home, place, [*chosen, "--dburi", url, "-p", "no:xdist"], cwd=work, env=environment(),
        )
