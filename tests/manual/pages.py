"""The fenced blocks of the manual's pages, and what their first lines say is to be done with them.

The first word behind the fence is the language, as renderers want it; the words behind it are for
this suite. CONTRIBUTING.md tells which there are.
"""

import pathlib
import re
import textwrap
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).parent.parent.parent.resolve()
FENCE = "```"
# Each language with the words that may stand behind it.
WORDS = {
    "sh": {"demo"},
    "sql": {"demo", "server", "console"},
    "toml": {"serve"},
    "ini": set(),
    "console": {"demo", "exact", "soon"},
    "text": {"output", "exact"},
}


class PageError(Exception):
    """A page that can't be read as one."""


@dataclass(frozen=True)
class Block:
    page: str
    #: Of the fence; the text begins behind it.
    line: int
    language: str
    words: frozenset[str]
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    def commands(self) -> list[tuple[int, str]]:
        """Lines of a shell, each with its number. What ends in a backslash goes on, and so does
        what is indented, or closes that."""
        found: list[tuple[int, str]] = []
        going_on = False
        for number, line in enumerate(self.text.splitlines(), self.line + 1):
            if going_on or line.startswith((" ", "done", "}", "EOF")):
                first, begun = found[-1]
                found[-1] = first, f"{begun}\n{line}"
            elif line.strip() and not line.startswith("#"):
                found.append((number, line))
            going_on = line.endswith("\\")
        return found


def pages() -> list[str]:
    """Those with commands for a reader: of the root and of docs/, without the decisions."""
    there = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in there)


def blocks(page: str, text: str) -> list[Block]:
    found = []
    fence = None
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith(FENCE):
            lines.append(line)
        elif fence is None:
            fence, lines = (number, line.strip().removeprefix(FENCE)), []
        else:
            text = textwrap.dedent("".join(f"{line}\n" for line in lines))
            found.append(block(page, *fence, text))
            fence = None
    if fence is not None:
        raise PageError(f"{page}:{fence[0]}: this block has no end")
    return found


def block(page: str, line: int, info: str, text: str) -> Block:
    language, *words = info.split() or [""]
    if language not in WORDS:
        raise PageError(f"{page}:{line}: a block is one of {', '.join(WORDS)}, not {info!r}")
    unknown = set(words) - WORDS[language]
    if unknown:
        raise PageError(f"{page}:{line}: {language} knows no word {', '.join(unknown)}")
    return Block(page, line, language, frozenset(words), text)


# What a reader of a transcript has typed: at a shell, at psql, at redis-cli.
PROMPT = re.compile(r"^(?:\$|(?P<psql>\w+)=[*!]?[>#]|(?P<redis>[0-9.]+:[0-9]+)>) (?P<typed>.*)$")
GOES_ON = re.compile(r"^\w+[-(][*!]?[>#] (?P<typed>.*)$")


@dataclass
class Exchange:
    """Something typed, and the lines that are answered to it; none: it is not told what comes."""

    line: int
    #: `shell`, `psql` or `redis`.
    at: str
    #: The database that psql's prompt names.
    database: str
    typed: str
    answer: list[str]


def exchanges(block: Block) -> list[Exchange]:
    found: list[Exchange] = []
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        more = GOES_ON.match(line)
        begun = PROMPT.match(line)
        if more and found and not found[-1].answer:
            found[-1].typed += f"\n{more['typed']}"
        elif begun:
            at = "psql" if begun["psql"] else "redis" if begun["redis"] else "shell"
            found.append(Exchange(number, at, begun["psql"] or "", begun["typed"], []))
        elif found:
            found[-1].answer.append(line)
        else:
            raise PageError(f"{block.page}:{number}: a transcript begins with a prompt")
    return found


# What differs from one time to the next.
VARYING = [
    (re.compile(r"\b[0-9A-F]+/[0-9A-F]+\b"), "LSN"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"\d+(\.\d+)?"), "N"),
    (re.compile(r"-{3,}"), "---"),
    (re.compile(r"\s+"), " "),
]


def shape(line: str, exact: bool) -> str:
    """A line without the width of its columns and, unless it is to be `exact`, its figures."""
    for pattern, instead in VARYING[-2:] if exact else VARYING:
        line = pattern.sub(instead, line)
    return line.strip()


def differs(expected: list[str], got: list[str], exact: bool) -> str | None:
    """The first line that is not as the page says. `…` stands for the rest of a line or, alone,
    for any number of lines."""
    wanted = [shape(line, exact) for line in expected if line.strip()]
    there = [shape(line, exact) for line in got if line.strip()]
    at = 0
    skipping = False
    for line in wanted:
        if line == "…":
            skipping = True
            continue
        found = at
        while skipping and found < len(there) and not same(line, there[found]):
            found += 1
        if found >= len(there) or not same(line, there[found]):
            is_there = there[at] if at < len(there) else "the end"
            return f"the page says {line!r}, there is {is_there!r}"
        at, skipping = found + 1, False
    if at < len(there) and not skipping:
        return f"the page ends, there is {there[at]!r}"
    return None


def same(wanted: str, there: str) -> bool:
    return there.startswith(wanted[:-1]) if wanted.endswith("…") else there == wanted
