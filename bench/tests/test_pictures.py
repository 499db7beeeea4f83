import re
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from pondage_bench.machine import REPOSITORY
from pondage_bench.pictures import drawing
from pondage_bench.pictures.drawing import Bar, Picture
from pondage_bench.pictures.figures import PICTURES
from pondage_bench.pictures.page import Cell, Page, PageError
from pondage_bench.report.ratios import LETTERS, LOSS_COLOUR, Ratio, ratio_chart

SVG = "{http://www.w3.org/2000/svg}"
MANUAL = REPOSITORY / "docs" / "benchmarks.md"
FOLDER = REPOSITORY / "docs" / "images" / "benchmarks"
AGAIN = "run `make pictures`"

TEXT = """\
# Top

```
# no heading
| no | table |
|---|---|
```

## Selects, 2 clients

On a quiet
machine.

| load | target | measured | |
|---|---|---|---|
| one | 2x direct | **1.50x** direct (1.40x to 1.60x); 3x PgBouncer | met |
| slow | - | 0.5x the time, 20 us against 1,000 us | |
| two, 1 | | 7x | |
| 4 | | 8x | |

| load | rate |
|---|---|
| Pondage | 1,000 |
| direct | 4,000 |
"""
SECTION = "Selects, 2 clients"
ONE = Cell(SECTION, "load | target | measured", "one", "measured")
RATE = Cell(SECTION, "load | rate", "Pondage", "rate")


def bars_of(svg: str) -> list[ElementTree.Element]:
    return [e for e in ElementTree.fromstring(svg).iter(f"{SVG}rect") if e.get("class") is None]


class ReadingThePage(unittest.TestCase):
    def test_a_number_is_found_by_its_row_its_column_and_what_stands_around_it(self) -> None:
        page = Page(TEXT)
        self.assertEqual(page.numbers(ONE, "{}x direct"), ["1.50"])
        self.assertEqual(page.numbers(ONE, "{}x PgBouncer"), ["3"])
        slow = Cell(SECTION, "load | target", "slow", "measured")
        self.assertEqual(page.numbers(slow, "{} us against {} us"), ["20", "1,000"])
        below = Cell(SECTION, "load | target", "two, 1", "measured", below=1)
        self.assertEqual(page.numbers(below, "{}x"), ["8"])

    def test_what_is_not_there_or_there_twice_is_an_error_that_names_it(self) -> None:
        page = Page(TEXT)
        wrong = [
            (Cell("Gone", "load", "one", "measured"), "{}x", "no heading `Gone`"),
            (Cell(SECTION, "lead", "one", "measured"), "{}x", "0 rows begin with `one`"),
            (Cell(SECTION, "load", "two", "measured"), "{}x", "0 rows begin with `two`"),
            (Cell(SECTION, "load", "one", "ratio"), "{}x", "no column `ratio`"),
            (Cell(SECTION, "load", "two, 1", "measured", below=2), "{}x", "no row 2 below"),
            (ONE, "{}x Odyssey", "is 0 times"),
            (ONE, "{}x", "is 4 times"),
        ]
        for cell, find, said in wrong:
            with self.assertRaisesRegex(PageError, re.escape(said)):
                page.numbers(cell, find)
        with self.assertRaisesRegex(PageError, "two headings"):
            Page(TEXT + "## Selects, 2 clients\n")


class Figures(unittest.TestCase):
    def times(self, bar: Bar) -> float:
        return bar.drawn(Page(TEXT)).times

    def test_a_ratio_is_told_or_that_of_two_numbers_and_less_time_is_better(self) -> None:
        slow = Cell(SECTION, "load | target", "slow", "measured")
        direct = Cell(SECTION, "load | rate", "direct", "rate")
        self.assertEqual(self.times(Bar("", ONE, "{}x direct")), 1.5)
        self.assertEqual(self.times(Bar("", slow, "{}x the time", less=True)), 2.0)
        self.assertEqual(self.times(Bar("", slow, "{} us against {} us", less=True)), 50.0)
        self.assertEqual(self.times(Bar("", RATE, "{}", beside=direct)), 0.25)
        self.assertEqual(self.times(Bar("", ONE, "({}x to {}x)", only=1)), 1.6)

    def test_numbers_are_shown_as_they_stand_in_the_table(self) -> None:
        direct = Cell(SECTION, "load | rate", "direct", "rate")
        both = Bar("", RATE, "{}", "{}/s against {}", beside=direct)
        self.assertEqual(both.drawn(Page(TEXT)).text, "1,000/s against 4,000")
        range_of = Bar("", ONE, "({}x to {}x)", "{}x and {}x", only=0)
        self.assertEqual(range_of.drawn(Page(TEXT)).text, "1.40x and 1.60x")
        self.assertEqual(Bar("", ONE, "{}x direct", "{}x").drawn(Page(TEXT)).text, "1.50x")

    def test_a_number_that_changes_changes_its_bar(self) -> None:
        page = Page(TEXT.replace("**1.50x**", "**0.50x**"))
        bar = Bar("prepared", ONE, "{}x direct", "{}x")
        before = Picture("p", "Title", "Against.", [bar]).drawn(Page(TEXT))
        after = Picture("p", "Title", "Against.", [bar]).drawn(page)
        self.assertNotEqual(bars_of(before)[0].get("fill"), LOSS_COLOUR)
        self.assertEqual(bars_of(after)[0].get("fill"), LOSS_COLOUR)
        self.assertIn("prepared: 0.50x (worse)", after)

    def test_conditions_have_to_be_in_the_section(self) -> None:
        bar = Bar("", ONE, "{}x direct")
        said = Picture("p", "Title", "Against.", [bar], ["quiet machine"]).drawn(Page(TEXT))
        self.assertIn("Quiet machine.", said)
        with self.assertRaisesRegex(PageError, "no longer says `busy`"):
            Picture("p", "Title", "Against.", [bar], ["busy"]).drawn(Page(TEXT))


class Drawing(unittest.TestCase):
    def test_half_is_as_long_a_bar_as_the_double_on_the_other_side_of_the_line(self) -> None:
        ratios = [Ratio(str(times), "pondage", times, "") for times in (2.0, 0.5, 8.0, 1.0)]
        two, half, eight, same = bars_of(ratio_chart("t", "s", "f", ratios, says="w"))
        width = [float(bar.get("width", "")) for bar in (two, half, eight, same)]
        self.assertAlmostEqual(width[0], width[1], delta=0.11)
        self.assertAlmostEqual(width[2], 3 * width[0], delta=0.5)
        self.assertGreater(width[3], 0)
        one = float(two.get("x", ""))
        self.assertAlmostEqual(float(half.get("x", "")) + width[1], one, delta=0.11)

    def test_what_is_written_is_escaped_and_said_in_words(self) -> None:
        svg = ratio_chart("a < b", "c & d", "<e>", [Ratio("</svg>", "x", 1, "<1>")], says="<&>")
        root = ElementTree.fromstring(svg)
        self.assertEqual(root.findtext(f"{SVG}title"), "a < b")
        self.assertEqual(root.findtext(f"{SVG}desc"), "<&>")
        texts = [element.text for element in root.iter(f"{SVG}text")]
        for text in ("c & d", "<e>", "</svg>", "<1>"):
            self.assertIn(text, texts)


class ThoseOfTheManual(unittest.TestCase):
    def setUp(self) -> None:
        self.text = MANUAL.read_text()
        self.page = Page(self.text)

    def test_every_picture_is_what_its_tables_say(self) -> None:
        wanted = drawing.files(self.page, PICTURES)
        self.assertEqual({path.name for path in FOLDER.iterdir()}, set(wanted), AGAIN)
        for name, text in wanted.items():
            self.assertEqual((FOLDER / name).read_text(), text, f"{name} is stale: {AGAIN}")

    def test_every_picture_is_shown_with_its_words(self) -> None:
        for path in (MANUAL, REPOSITORY / "README.md"):
            text = path.read_text()
            self.assertEqual(text, drawing.with_words(text, self.page, PICTURES), AGAIN)
        for picture in PICTURES:
            self.assertIn(f"](images/benchmarks/{picture.name}.svg)", self.text)

    def test_every_line_has_room_for_its_words_and_its_figure(self) -> None:
        for picture in PICTURES:
            self.assertLessEqual(len(picture.title), LETTERS)
            for bar in picture.bars:
                ratio = bar.drawn(self.page)
                self.assertLess(len(ratio.label) + len(ratio.text), LETTERS, ratio)

    def test_losses_are_pictured_too(self) -> None:
        glance = next(picture for picture in PICTURES if picture.name == "at-a-glance")
        times = [bar.drawn(self.page).times for bar in glance.bars]
        self.assertGreater(sum(value < 1 for value in times), 2)

    def test_every_figure_at_a_glance_is_one_of_the_rest_of_the_page(self) -> None:
        head, rest = self.text.split("## At a glance\n")
        glance, rest = rest.split("\n## ", 1)
        glance = re.sub(r"!?\[[^]]*\]\([^)]*\)", "", glance)
        figure = r"(?<![\d.,])\d[\d,]*(?:\.\d+)?x?"
        there = {word.strip("x,") for word in re.findall(figure, rest)}
        figures = [word.rstrip("x,") for word in re.findall(figure, glance)]
        self.assertGreater(len(figures), 15)
        self.assertEqual([word for word in figures if word not in there], [], head[:20])


class Redrawing(unittest.TestCase):
    def test_what_is_stale_is_written_and_what_nothing_draws_goes(self) -> None:
        bar = Bar("prepared", ONE, "{}x direct", "{}x")
        pictures = [Picture("won", "Title", "Against.", [bar])]
        with TemporaryDirectory() as name:
            root = Path(name)
            folder = root / "docs" / "images" / "benchmarks"
            folder.mkdir(parents=True)
            (folder / "old.svg").write_text("")
            shown = "![of old](images/benchmarks/won.svg)\n"
            (root / "docs" / "benchmarks.md").write_text(shown + TEXT)
            (root / "README.md").write_text("none\n")
            changed = {path.name for path in drawing.redraw(root, pictures)}
            self.assertEqual(changed, {"won.svg", "old.svg", "benchmarks.md"})
            self.assertFalse((folder / "old.svg").exists())
            words = "![Title. Against. prepared: 1.50x (better).](images/benchmarks/won.svg)\n"
            self.assertEqual((root / "docs" / "benchmarks.md").read_text(), words + TEXT)
            self.assertEqual(drawing.redraw(root, pictures), [])
            (root / "README.md").write_text("![](docs/images/benchmarks/gone.svg)\n")
            with self.assertRaisesRegex(PageError, "gone.svg, which nothing draws"):
                drawing.redraw(root, pictures)
