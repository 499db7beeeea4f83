#!/usr/bin/env python3
"""Runs what the manual tells its readers to type, page by page, each from its first line on.

It takes root and namespaces; where those are not to be had it says so, and ends with status 0.
"""

import argparse
import copy
import os
import pathlib
import re
import sys
import tempfile
import time
import tomllib

import pages
import prose
from pages import ROOT, Block, PageError
from scenes import CONFIGURATION, FILES, SCENES, Scene, Table
from stage import BenchError, Failed, PgError, Stage, Supervisor, built_pondage, leave, missing

CONFIGURATION_FILE = "/etc/pondage/pondage.toml"
DEMO = "pondage demo --no-load"
OWN = "app:secret"
# For a transcript that becomes true by being typed again.
SOON_SECONDS = 30.0
# Words behind `pondage` of commands that end by themselves.
COMMANDS = (
    "check", "completions", "doctor", "import", "manual", "top", "upgrade", "--help", "--version",
)
# Of those, the ones that are about a Pondage that runs.
NEED_ONE = ["pondage", "top"], ["pondage", "upgrade"]
# What is left out, by how its line begins, and why.
IGNORED = {
    "make ": "a target of the Makefile: looked up there",
    "cargo ": "tests and CI run cargo",
    "docker ": "takes an engine of containers; tests/packaging reads the files",
    "helm ": "takes a cluster; tests/packaging reads the chart",
    "sudo": "changes the machine; tests/packaging installs the package into a directory",
    "ssh ": "takes another machine",
}


class Page:
    """One page on the stage."""

    def __init__(self, name: str, blocks: list[Block], stage: Stage):
        self.name = name
        self.blocks = blocks
        self.stage = stage
        self.scene = SCENES.get(name, Scene())
        self.configuration = copy.deepcopy(CONFIGURATION)
        merge(self.configuration, self.scene.configuration)
        #: Of the command before.
        self.said = ""
        self.failures: list[str] = []
        self.ran = 0

    def run(self) -> None:
        with self.stage.page():
            for name, text in (FILES | self.scene.files).items():
                path = self.stage.home / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            self.configure(self.configuration)
            self.stage.variables = self.scene.variables
            self.stage.sql(self.scene.server)
            self.stage.sql(self.scene.sql, user="app")
            for command in self.scene.services:
                self.stage.background(command)
            done = self.stage.shell(self.scene.before)
            if done.returncode != 0:
                raise Failed(done.stdout)
            for block in self.blocks:
                try:
                    getattr(self, block.language)(block)
                except (BenchError, Failed, PgError, PageError, tomllib.TOMLDecodeError) as error:
                    self.failures.append(f"{block}: {error}")

    def configure(self, configuration: Table) -> None:
        pathlib.Path(CONFIGURATION_FILE).write_text(toml(configuration))

    def serve(self, block: Block) -> None:
        """Has that run which the block is for, from where it was or anew."""
        wanted = DEMO if "demo" in block.words else f"pondage serve -c {CONFIGURATION_FILE}"
        if "demo" in block.words or not self.stage.running or self.stage.running == DEMO:
            if self.stage.running != wanted:
                self.stage.serve(wanted)
                if "redis" in self.configuration or "demo" in block.words:
                    self.stage.until_redis_answers("demo:demo" if "demo" in block.words else OWN)

    def expect(self, line: int, what: str, done: object) -> None:
        self.ran += 1
        self.said = done.stdout
        if done.returncode != 0:
            raise Failed(f"line {line}: `{what}` ends with {done.returncode}:\n{done.stdout}")

    def sh(self, block: Block) -> None:
        for line, command in block.commands():
            words = command.split()
            if command.startswith(tuple(IGNORED)):
                self.ignored(line, command)
            elif words[0] == "pondage" and words[1] not in COMMANDS:
                self.ran += 1
                self.stage.serve(command)
            else:
                if words[:2] in NEED_ONE or words[0] != "pondage":
                    self.serve(block)
                if words[:2] == ["pondage", "top"] and "--once" not in words:
                    self.ran += 1
                    self.stage.terminal(command)
                else:
                    self.expect(line, command, self.stage.shell(command))

    @staticmethod
    def ignored(line: int, command: str) -> None:
        target = re.match(r"make ([\w-]+)", command)
        makefile = (ROOT / "Makefile").read_text()
        if target and not re.search(rf"^{target[1]}:", makefile, re.MULTILINE):
            raise Failed(f"line {line}: the Makefile has no target {target[1]}")

    def sql(self, block: Block) -> None:
        if "server" in block.words:
            words = self.stage.psql("app", "postgres")
        else:
            self.serve(block)
            console, demo = "console" in block.words, "demo" in block.words
            user = "admin" if console else "demo" if demo else "app"
            database = "pondage" if console else "demo" if demo else "app"
            words = self.stage.psql(database, user, door=6432)
        self.expect(block.line, "psql", self.stage.run(words, with_values(block.text)))

    def toml(self, block: Block) -> None:
        configuration = copy.deepcopy(self.configuration)
        merge(configuration, tomllib.loads(block.text))
        self.configure(configuration)
        check = f"pondage check -c {CONFIGURATION_FILE}"
        try:
            self.expect(block.line, check, self.stage.shell(check))
            if "serve" in block.words:
                self.configuration = configuration
                self.stage.serve(f"pondage serve -c {CONFIGURATION_FILE}")
        finally:
            self.configure(self.configuration)

    def ini(self, block: Block) -> None:
        (self.stage.home / "pgbouncer.ini").write_text(block.text)
        command = "pondage import pgbouncer.ini"
        self.expect(block.line, command, self.stage.shell(command))

    def console(self, block: Block) -> None:
        self.serve(block)
        exact = "exact" in block.words
        demo = "demo" in block.words
        talks = pages.exchanges(block)
        first = 0
        while first < len(talks):
            last = first + 1
            while last < len(talks) and key(talks[last]) == key(talks[first]):
                last += 1
            deadline = time.monotonic() + (SOON_SECONDS if "soon" in block.words else 0.0)
            while True:
                try:
                    self.talk(talks[first:last], exact, demo)
                    break
                except Failed:
                    if time.monotonic() > deadline:
                        raise
            first = last

    def talk(self, talks: list[pages.Exchange], exact: bool, demo: bool) -> None:
        """Exchanges with one program."""
        if talks[0].at == "shell":
            for talk in talks:
                self.expect(talk.line, talk.typed, self.stage.shell(talk.typed))
                self.compare(talk, self.said.splitlines(), exact)
            return
        mark = f"--{time.monotonic_ns()}--"
        if talks[0].at == "psql":
            database = talks[0].database
            user = "demo" if demo else "admin" if database == "pondage" else "app"
            words = self.stage.psql(database, user, door=6432)
            typed = "".join(f"{talk.typed}\n\\echo {mark}\n" for talk in talks)
        else:
            words = ["redis-cli", "--no-auth-warning", "-u",
                     f"redis://{'demo:demo' if demo else OWN}@127.0.0.1:6379"]
            typed = "".join(f"{talk.typed}\nECHO {mark}\n" for talk in talks)
        if talks[0].at == "redis":
            # As a terminal shows it.
            words.append("--no-raw")
        done = self.stage.run(words, typed)
        self.expect(talks[0].line, talks[0].typed, done)
        answers = re.split(rf'^"?{mark}"?$\n?', done.stdout, flags=re.MULTILINE)
        for talk, answer in zip(talks, answers, strict=False):
            self.compare(talk, answer.splitlines(), exact)

    def compare(self, talk: pages.Exchange, got: list[str], exact: bool) -> None:
        complaint = pages.differs(talk.answer, got, exact) if talk.answer else None
        if complaint:
            answer = "\n".join(got)
            raise Failed(f"line {talk.line}: {complaint}; all of it:\n{answer}")

    def text(self, block: Block) -> None:
        if "output" in block.words:
            exact = "exact" in block.words
            complaint = pages.differs(block.text.splitlines(), self.said.splitlines(), exact)
            if complaint:
                raise Failed(f"{complaint}; all of it:\n{self.said}")


def key(talk: pages.Exchange) -> tuple[str, str]:
    return talk.at, talk.database


def with_values(text: str) -> str:
    """Statements with parameters are prepared: psql has no values for them."""
    return re.sub(r"^(?=\w[^;]*\$1)", "PREPARE read AS ", text)


def merge(into: Table, more: Table) -> None:
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = value


def toml(table: Table, path: tuple[str, ...] = ()) -> str:
    """In TOML: values first, tables behind them."""
    own = [f"{quoted(name)} = {value(it)}" for name, it in table.items()
           if not isinstance(it, dict)]
    head = [f"[{'.'.join(map(quoted, path))}]"] if path else []
    tables = [toml(it, (*path, name)) for name, it in table.items() if isinstance(it, dict)]
    return "\n".join([*head, *own, *tables]) + "\n"


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def value(it: object) -> str:
    if isinstance(it, list):
        return f"[{', '.join(map(value, it))}]"
    if isinstance(it, bool):
        return str(it).lower()
    return quoted(it) if isinstance(it, str) else str(it)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="docs/cache.md; all of them")
    options = parser.parse_args()
    # Read first, so that a block nobody knows is told on every machine.
    found = {name: pages.blocks(name, (ROOT / name).read_text())
             for name in options.pages or pages.pages()}
    lacks = missing()
    if lacks:
        print(f"the manual's commands are not run: {lacks}")
        return 0
    program = built_pondage()
    leave()
    failures: list[str] = []
    ran = 0
    with (
        tempfile.TemporaryDirectory(prefix="pondage-manual-") as directory,
        Supervisor(pathlib.Path(directory) / "run") as supervisor,
    ):
        os.chmod(directory, 0o755)
        stage = Stage(supervisor, program)
        for name, blocks in found.items():
            page = Page(name, blocks, stage)
            began = time.monotonic()
            try:
                page.run()
            except (BenchError, Failed, PgError) as error:
                page.failures.append(f"{name}: {error}")
            print(f"{name}: {page.ran} commands, {len(page.failures)} failed,"
                  f" {time.monotonic() - began:.1f} s", flush=True)
            failures += page.failures
            ran += page.ran
        texts = {name: (ROOT / name).read_text() for name in found}
        with stage.page():
            pathlib.Path(CONFIGURATION_FILE).write_text(toml(CONFIGURATION))
            stage.serve(f"pondage serve -c {CONFIGURATION_FILE}")
            looked, wrong = prose.complaints(stage, texts)
        print(f"in sentences: {looked} commands, {len(wrong)} failed")
        failures += wrong
        ran += looked
    for failure in failures:
        print(f"\n{failure}")
    print(f"\n{ran - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
