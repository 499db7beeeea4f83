"""PostgreSQL's own suites, from the source of the Debian package that is installed."""

import os
import pathlib
import pwd
import re
import shutil
import subprocess

from .base import INSTALL_SECONDS, FAILED, PASSED, Place, Suite, call, environment, install_step

SERVER = "postgresql-15"
LINE = re.compile(r"^(?:test| {4,})\s*(\S+)\s+\.\.\. (ok|FAILED|failed)\b")


def locale(database: str) -> list[str]:
    """What pg_regress says to a database that it makes itself."""
    values = {
        "lc_messages": "C", "lc_monetary": "C", "lc_numeric": "C", "lc_time": "C",
        "bytea_output": "hex", "timezone_abbreviations": "Default",
    }
    return [f"ALTER DATABASE {database} SET {name} TO '{value}'" for name, value in values.items()]


def downloaded(home: pathlib.Path) -> str | None:
    """The version of the source that is there."""
    trees = sorted(home.glob("postgresql-*/src"))
    return trees[-1].parent.name.removeprefix("postgresql-") if trees else None


def source(home: pathlib.Path) -> pathlib.Path:
    """Downloads and unpacks it, with package sources of its own: this system's, and theirs."""
    there = downloaded(home)
    if there:
        return home / f"postgresql-{there}"
    options = package_sources(home)
    install_step(["apt-get", *options, "update"], home)
    version = download(home, options)
    unpacked = home / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    described = home / f"{SERVER}_{version}.dsc"
    install_step(["dpkg-source", "--no-check", "-x", described, unpacked], home)
    return unpacked.rename(home / f"postgresql-{version}")


def package_sources(home: pathlib.Path) -> list[str]:
    """This system's package sources, with source packages, as options of apt-get."""
    parts, lists = home / "apt/parts", home / "apt/lists"
    for directory in (parts, lists / "partial"):
        directory.mkdir(parents=True, exist_ok=True)
    for path in [pathlib.Path("/etc/apt/sources.list"),
                 *pathlib.Path("/etc/apt/sources.list.d").glob("*")]:
        if path.is_file() and path.suffix in (".list", ".sources"):
            text = re.sub(r"^Types: deb$", "Types: deb deb-src", path.read_text(), flags=re.M)
            if path.suffix == ".list":
                text += re.sub(r"^deb ", "deb-src ", text, flags=re.M)
            (parts / path.name).write_text(text)
    return [
        "-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={parts}",
        "-o", f"Dir::State::lists={lists}", "-o", "APT::Sandbox::User=root",
    ]


def download(home: pathlib.Path, options: list[str]) -> str:
    """The installed version's source, or another minor version's where that is not to be had."""
    installed = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", SERVER], capture_output=True, text=True,
        check=False,
    ).stdout
    shown = subprocess.run(
        ["apt-cache", *options, "showsrc", SERVER], capture_output=True, text=True, check=False,
    ).stdout
    versions = re.findall(r"^Version: (\S+)$", shown, flags=re.M)
    for version in sorted(versions, key=lambda version: (version == installed, version))[::-1]:
        got = call(
            ["apt-get", *options, "source", "--download-only", f"{SERVER}={version}"],
            home / "install.log", INSTALL_SECONDS, cwd=home,
        )
        if got == 0:
            return version
    raise SystemExit(f"no source of {SERVER} to be had; see {home}/install.log")


def programs(home: pathlib.Path) -> pathlib.Path:
    """The same version's programs, libraries and headers, unpacked beside the source.

    What is installed may be of another minor version, with other messages.
    """
    unpacked = home / "programs"
    if not unpacked.is_dir():
        version = downloaded(home)
        packages = [f"{name}={version}" for name in
                    (SERVER, "postgresql-client-15", "postgresql-server-dev-15")]
        install_step(["apt-get", "download", *packages, "libpq-dev"], home, cwd=home)
        for package in home.glob("*.deb"):
            install_step(["dpkg-deb", "-x", package, home / "unpacked"], home)
        (home / "unpacked").rename(unpacked)
    return unpacked / "usr"


def include(home: pathlib.Path) -> list[str]:
    headers = programs(home) / "include/postgresql"
    return [f"-I{headers}/15/server", f"-I{headers}"]


def tests_of(output: str) -> dict[str, str]:
    """Of what pg_regress printed."""
    found = (LINE.match(line) for line in output.splitlines())
    return {m[1]: PASSED if m[2] == "ok" else FAILED for m in found if m}


class FromSource(Suite):
    def home(self, home: pathlib.Path) -> pathlib.Path:
        return home.parent / "postgresql"

    def bindir(self, home: pathlib.Path) -> pathlib.Path:
        return programs(self.home(home)) / "lib/postgresql/15/bin"

    def install(self, home: pathlib.Path) -> None:
        source(self.home(home))
        self.version = downloaded(self.home(home)) or ""


class Regress(FromSource):
    name = "regress"
    about = "PostgreSQL's regression tests (`pg_regress --use-existing`)"
    database = "regression"
    prepare = locale(database)
    program = "regress/pg_regress"
    schedule = "parallel_schedule"
    modes = ("session", "session-once", "transaction")
    short_tests = ["test_setup", "boolean", "int4", "strings", "numerology", "transactions",
                   "prepare", "guc", "copy2", "plancache", "temp", "plpgsql",
                   "prepared_xacts", "copydml", "largeobject", "combocid"]

    def install(self, home: pathlib.Path) -> None:
        super().install(home)
        built = self.home(home) / "regress.so"
        if not built.is_file():
            install_step(
                ["cc", "-shared", "-fPIC", "-O1", *include(self.home(home)), "-o", built,
                 source(self.home(home)) / "src/test/regress/regress.c"],
                self.home(home),
            )

    def variables(self, libraries: pathlib.Path) -> dict[str, object]:
        return {}

    def tests(self, short: bool) -> list[str]:
        return self.short_tests if short else []

    def run(self, home: pathlib.Path, place: Place, short: bool) -> dict[str, str]:
        kind = self.program.split("/")[0]
        work = place.directory / kind
        shutil.copytree(source(self.home(home)) / "src/test" / kind, work)
        libraries = place.directory / "libraries"
        libraries.mkdir()
        for library in [*place.bindir.parent.glob("lib/*.so"), *self.home(home).glob("*.so")]:
            shutil.copy(library, libraries)
        user = as_service(place.directory)
        chosen = self.tests(short) or [f"--schedule={work}/{self.schedule}"]
        log = place.kept / "output.log"
        call(
            [place.bindir.parent / "lib/pgxs/src/test" / self.program, "--use-existing",
             f"--inputdir={work}", f"--outputdir={work}", f"--bindir={place.bindir}",
             f"--dlpath={libraries}", f"--host={place.host}", f"--port={place.port}",
             f"--user={place.user}", f"--dbname={place.database}", "--max-connections=10",
             *chosen],
            log, self.seconds, cwd=work,
            env=environment(**self.variables(libraries)), **user,
        )
        if (work / "regression.diffs").is_file():
            shutil.copy(work / "regression.diffs", place.kept)
        return tests_of(log.read_text(errors="replace"))


# The tester asks libpq for its sessions' process ids, to see in the server who waits for whom.
# Pondage tells its clients ids of its own, so the server is asked, in the direct run as well.
ASK_FOR_PID = """\
#include <libpq-fe.h>
#include <stdlib.h>
int PQbackendPID(const PGconn *conn) {
    PGresult *result = PQexec((PGconn *) conn, "SELECT pg_backend_pid()");
    int pid = PQntuples(result) == 1 ? atoi(PQgetvalue(result, 0, 0)) : 0;
    PQclear(result);
    return pid;
}
"""


class Isolation(Regress):
    name = "isolation"
    about = "PostgreSQL's isolation tests"
    program = "isolation/pg_isolation_regress"
    database = "isolation_regression"
    prepare = locale(database)
    schedule = "isolation_schedule"
    settings = {"max_prepared_transactions": "10"}
    short_tests = ["read-only-anomaly", "deadlock-simple", "fk-deadlock", "eval-plan-qual-trigger",
                   "insert-conflict-do-nothing", "async-notify", "skip-locked", "tuplelock-update",
                   "lock-nowait", "timeouts"]

    # In transaction mode no session has a process of its own whose waiting could be looked for.
    modes = ("session",)

    def install(self, home: pathlib.Path) -> None:
        FromSource.install(self, home)
        home = self.home(home)
        if not (home / "ask-for-pid.so").is_file():
            (home / "ask-for-pid.c").write_text(ASK_FOR_PID)
            install_step(["cc", "-shared", "-fPIC", *include(home), "-o", home / "ask-for-pid.so",
                          home / "ask-for-pid.c"], home)

    def variables(self, libraries: pathlib.Path) -> dict[str, object]:
        # Seconds that a step may wait for; the suite's own are six minutes.
        return {"LD_PRELOAD": libraries / "ask-for-pid.so", "PGISOLATIONTIMEOUT": 60}


class Pipeline(FromSource):
    name = "libpq_pipeline"
    about = "libpq's tests of pipeline mode"

    def install(self, home: pathlib.Path) -> None:
        super().install(home)
        built = self.home(home) / "libpq_pipeline"
        if not built.is_file():
            tree, usr = source(self.home(home)), programs(self.home(home))
            libpq = next(pathlib.Path("/usr/lib").glob("*/libpq.so.5"))
            install_step(
                ["cc", "-O1", *include(self.home(home)), "-o", built,
                 tree / "src/test/modules/libpq_pipeline/libpq_pipeline.c", libpq,
                 f"-L{usr}/lib/postgresql/15/lib", "-lpgcommon", "-lpgport"],
                self.home(home),
            )

    def run(self, home: pathlib.Path, place: Place, short: bool) -> dict[str, str]:
        program = self.home(home) / "libpq_pipeline"
        names = subprocess.run([program, "tests"], capture_output=True, text=True, check=True)
        found = {}
        for name in names.stdout.split():
            connection = f"host={place.host} port={place.port} user={place.user} " \
                f"dbname={place.database}"
            log = place.kept / "output.log"
            with log.open("a") as said:
                said.write(f"=== {name}\n")
            status = call([program, name, connection], log, 60, env=environment())
            found[name] = PASSED if status == 0 else FAILED
        return found


def as_service(directory: pathlib.Path) -> dict:
    """Gives everything to the service user, whom the server runs as and who writes files too."""
    if os.geteuid() != 0:
        return {}
    owner = pwd.getpwuid(directory.stat().st_uid)
    for path in [directory, *directory.rglob("*")]:
        os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
