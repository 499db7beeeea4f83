"""Draws the pictures of a page, and keeps them and the words for them as its tables say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..report.ratios import Ratio, ratio_chart
from .page import HOLE, Cell, Page, PageError


@dataclass(frozen=True)
class Bar:
    """One ratio: the cell's number where `find` has a hole, or the first by the second where it has
    two, or the cell's number by that of `beside`. `only` says which of many holes counts. `less` is
    for times, where less is better. `show` has holes for the numbers, which are shown as the table
    writes them; without it, as `find` finds them.
    """

    label: str
    cell: Cell
    find: str = "{}x"
    show: str = ""
    beside: Cell | None = None
    less: bool = False
    kind: str = "pondage"
    only: int | None = None

    def called(self, label: str) -> Bar:
        """The same figure in another company."""
        return replace(self, label=label)

    def drawn(self, page: Page) -> Ratio:
        told = page.numbers(self.cell, self.find)
        if self.beside is not None:
            told += page.numbers(self.beside, self.find)
        counts = told if self.only is None else [told[self.only]]
        values = [float(number.replace(",", "")) for number in counts]
        if len(values) > 2 or min(values) <= 0:
            raise PageError(f"{self.cell.section}, {self.cell.row}: no ratio in {told}")
        times = values[0] if len(values) == 1 else values[0] / values[1]
        show = self.show or self.find
        shown = counts if show.count(HOLE) <= len(counts) else told
        return Ratio(self.label, self.kind, 1 / times if self.less else times, show.format(*shown))


@dataclass(frozen=True)
class Picture:
    """`name` is that of its file. `conditions` are words of its first bar's section, which has to
    have them: they are shown, so that no picture goes without what was measured how and when.
    """

    name: str
    title: str
    against: str
    bars: Sequence[Bar]
    conditions: Sequence[str] = ()

    def drawn(self, page: Page) -> str:
        ratios = [bar.drawn(page) for bar in self.bars]
        sections = list(dict.fromkeys(bar.cell.section for bar in self.bars))
        for words in self.conditions:
            if words not in page.section(sections[0]).text:
                raise PageError(f"{self.name}: {sections[0]} no longer says `{words}`")
        tables = " and ".join(f"\u201c{section}\u201d" for section in sections)
        source = "Each step of the scale doubles. "
        if any(" against " in ratio.text for ratio in ratios):
            source += "Where two figures stand, the bar is their quotient. "
        source += f"Table of {tables}." if len(sections) < 3 else "Tables of docs/benchmarks.md."
        source += "".join(f" {words[:1].upper()}{words[1:]}." for words in self.conditions)
        return ratio_chart(self.title, self.against, source, ratios, says=self.in_words(page))

    def in_words(self, page: Page) -> str:
        """For who can't see it: every bar with its figure, and whether it is a win."""
        ratios = [bar.drawn(page) for bar in self.bars]
        told = "; ".join(
            f"{ratio.label}: {ratio.text} ({_judged(ratio.times)})" for ratio in ratios
        )
        return f"{self.title}. {self.against} {told}."


def _judged(times: float) -> str:
    return "better" if times > 1 else "worse" if times < 1 else "the same"


def files(page: Page, pictures: Sequence[Picture]) -> dict[str, str]:
    """The pictures by the names of their files."""
    return {f"{picture.name}.svg": picture.drawn(page) for picture in pictures}


def with_words(text: str, page: Page, pictures: Sequence[Picture]) -> str:
    """The text of a page with the words that stand for each of its pictures as the tables say."""
    words = {picture.name: picture.in_words(page) for picture in pictures}

    def embedded(found: re.Match[str]) -> str:
        folder, name = found.groups()
        if name not in words:
            raise PageError(f"a page shows {name}.svg, which nothing draws")
        return f"![{words[name]}]({folder}{name}.svg)"

    return re.sub(r"!\[[^]]*\]\(((?:docs/)?images/benchmarks/)([^)]*)\.svg\)", embedded, text)


def redraw(repository: Path, pictures: Sequence[Picture]) -> list[Path]:
    """Writes every picture that is stale, and the pages where its words are; what has changed."""
    source = repository / "docs" / "benchmarks.md"
    page = Page(source.read_text())
    folder = repository / "docs" / "images" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {folder / name: text for name, text in files(page, pictures).items()}
    for shown in (source, repository / "README.md"):
        wanted[shown] = with_words(shown.read_text(), page, pictures)
    gone = [path for path in folder.iterdir() if path not in wanted]
    for path in gone:
        path.unlink()
    changed = [
        path for path, text in wanted.items() if not path.exists() or path.read_text() != text
    ]
    for path in changed:
        path.write_text(wanted[path])
    return changed + gone
