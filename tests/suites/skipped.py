"""The lists of tests that are not run, each line with its reason."""

import pathlib
import re

LINE = re.compile(r"^(?P<what>\S.*?) -- (?P<reason>\S.*)$")


class Unreadable(Exception):
    """A line without a reason, or without what it is about."""


def read(path: pathlib.Path) -> list[tuple[str, str]]:
    """What is skipped and why. Empty lines and those that begin with `#` are for the reader."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.match(line)
        if not match:
            raise Unreadable(f"{path}:{number}: needs `WHAT -- REASON`: {line!r}")
        found.append((match["what"], match["reason"]))
    return found
