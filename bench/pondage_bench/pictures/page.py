"""Reads the tables of a page of Markdown, by the heading they stand under and their first cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

NUMBER = r"(?<![\d.,])(\d[\d,]*(?:\.\d+)?)"
HOLE = "{}"


class PageError(Exception):
    """The page has not what a picture is drawn from."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table: `table` is the beginning of its head, with `|` between cells; `row` is the
    first cell of its row, or of one that stands `below` rows above it.
    """

    section: str
    table: str
    row: str
    column: str
    below: int = 0


@dataclass(frozen=True)
class Table:
    head: list[str]
    rows: list[list[str]]


@dataclass
class Section:
    text: str = ""
    tables: list[Table] = field(default_factory=list)


class Page:
    def __init__(self, text: str) -> None:
        self.sections: dict[str, Section] = {}
        for heading, lines in _sections(text):
            if heading in self.sections:
                raise PageError(f"the page has two headings `{heading}`")
            self.sections[heading] = Section(" ".join(" ".join(lines).split()), _tables(lines))

    def section(self, heading: str) -> Section:
        if heading not in self.sections:
            raise PageError(f"the page has no heading `{heading}`")
        return self.sections[heading]

    def text(self, cell: Cell) -> str:
        """What stands in the cell, without marks for bold."""
        head = _cells(f"|{cell.table}|")
        tables = [t for t in self.section(cell.section).tables if t.head[: len(head)] == head]
        found = [
            (table, at)
            for table in tables
            for at, row in enumerate(table.rows)
            if row[0] == cell.row
        ]
        where = f"{cell.section}, tables that begin with `{cell.table}`"
        if len(found) != 1:
            raise PageError(f"{where}: {len(found)} rows begin with `{cell.row}`")
        table, at = found[0]
        if cell.column not in table.head:
            raise PageError(f"{where}: no column `{cell.column}`")
        if at + cell.below >= len(table.rows):
            raise PageError(f"{where}: no row {cell.below} below `{cell.row}`")
        return table.rows[at + cell.below][table.head.index(cell.column)].replace("**", "")

    def numbers(self, cell: Cell, find: str) -> list[str]:
        """The numbers where `find` has holes, as they are written; it has to be there once."""
        text = self.text(cell)
        pattern = NUMBER.join(re.escape(part) for part in find.split(HOLE))
        found = re.findall(pattern, text)
        if len(found) != 1:
            raise PageError(
                f"{cell.section}, {cell.row}: `{find}` is {len(found)} times in `{text}`"
            )
        return [found[0]] if isinstance(found[0], str) else list(found[0])


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Headings of any level, each with the lines up to the next one; what is code is no heading."""
    heading, lines, code = "", list[str](), False
    for line in text.splitlines():
        code ^= line.startswith("```")
        if not code and line.startswith("#"):
            yield heading, lines
            heading, lines = line.lstrip("#").strip(), []
        else:
            lines.append(line)
    yield heading, lines


def _tables(lines: list[str]) -> list[Table]:
    tables: list[Table] = []
    before: list[str] = []
    open_table: Table | None = None
    for line in lines:
        if not line.startswith("|"):
            open_table, before = None, []
        elif open_table is not None:
            open_table.rows.append(_cells(line))
        elif set(line) <= set("|-: "):
            open_table = Table(before, [])
            tables.append(open_table)
        else:
            before = _cells(line)
    return tables


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip()[1:-1].split("|")]
