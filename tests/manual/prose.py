"""Commands in the middle of a sentence: there are no values to run them with, but each has to
exist."""

import re
import subprocess

from pages import FENCE, ROOT
from stage import Failed, Stage

SPAN = re.compile(r"`([^`\n]+)`")
#: Names that Pondage gives to connections, and placeholders.
NO_COMMANDS = {"pondage listen", "pondage redis", "pondage URL"}
OF_OTHERS = re.compile(r"SHOW READYSET ")


def spans(text: str) -> list[str]:
    """Code within lines, without the blocks."""
    fenced = False
    found: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith(FENCE):
            fenced = not fenced
        elif not fenced:
            found += SPAN.findall(line)
    return found


def complaints(stage: Stage, texts: dict[str, str]) -> tuple[int, list[str]]:
    """How many were looked at, and what is wrong with them. Pondage has to run."""
    told = {(page, span) for page, text in texts.items() for span in spans(text)}
    looked, wrong = 0, []
    for page, span in sorted(told):
        check = next((check for start, check in CHECKS if re.match(start, span)), None)
        if check is None or span in NO_COMMANDS or OF_OTHERS.match(span):
            continue
        looked += 1
        try:
            check(stage, span)
        except Failed as error:
            wrong.append(f"{page}: `{span}`: {error}")
    return looked, wrong


def of_make(_: Stage, span: str) -> None:
    target = span.split()[1]
    if not re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE):
        raise Failed("the Makefile has no such target")


def of_pondage(stage: Stage, span: str) -> None:
    words = span.split()[1:]
    if words[0].startswith(("-", "postgres:")):
        words.insert(0, "serve" if words[0] not in ("--help", "--version") else "help")
    said = help_of(stage, words[0])
    for flag in (word for word in words[1:] if word.startswith("-")):
        if not re.search(rf"(^|[\s,]){re.escape(flag)}\b", said):
            raise Failed(f"there is no {flag}")


def help_of(stage: Stage, command: str) -> str:
    words = [str(stage.pondage), command, "--help"] if command != "help" else \
        [str(stage.pondage), "--help"]
    done: subprocess.CompletedProcess[str] = stage.run(words)
    if done.returncode != 0:
        raise Failed(done.stdout)
    return done.stdout


def of_console(stage: Stage, span: str) -> None:
    done = stage.run([*stage.psql("pondage", "admin", door=6432), "-c", span])
    if done.returncode != 0:
        raise Failed(done.stdout)


CHECKS = (
    (r"make [a-z]", of_make),
    (r"pondage [a-zA-Z-]", of_pondage),
    (r"SHOW [A-Z_ ]+$", of_console),
)
