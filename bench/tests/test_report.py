import json
import tempfile
import unittest
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from pondage_bench import report
from pondage_bench.report import tables
from pondage_bench.report.charts import charts_of
from pondage_bench.report.lines import grid_step, powers
from pondage_bench.report.svg import Bar, bar_chart
from pondage_bench.results import (
    Failure,
    LoadInfo,
    Metric,
    Results,
    Sample,
    SideInfo,
    SystemCalls,
)

TPS = Metric("tps", "transactions/s", "", 0, True)
CPU = Metric("cpu_gateway_us", "gateway CPU", "us/op", 1)
SVG = "{http://www.w3.org/2000/svg}"


def results_of_three_sides() -> Results:
    """Pondage is twice as fast as direct in every round, though rounds differ."""
    load = LoadInfo("select@10", "Selects <56 clients>", "pgbench -S", TPS, (TPS, CPU))
    results = Results(
        workload="connect",
        title="Connecting & pooling",
        machine={"processors": "2 x A|B"},
        options={"rounds": "3"},
        postgres={"fsync": "on"},
        loads=[load],
        sides=[
            SideInfo("direct", "direct", "PostgreSQL itself, TCP", "", ""),
            SideInfo("pondage", "pondage", "pondage, Unix socket", "0.1", "[listen]\n"),
            SideInfo("pgcat", "pgcat", "pgcat, TCP", "1.2", "a <b> & c\n"),
        ],
    )
    for number, base in ((1, 1000.0), (2, 100.0), (3, 2000.0)):
        results.samples.append(Sample("select@10", "direct", number, {"tps": base}))
        for side, factor in (("pondage", 2.0), ("pgcat", 0.5)):
            metrics = {"tps": base * factor, "cpu_gateway_us": 10.0 / factor}
            results.samples.append(Sample("select@10", side, number, metrics))
    return results


class ResultsOfRounds(unittest.TestCase):
    def test_json_holds_samples_summary_and_ratios(self) -> None:
        read = json.loads(json.dumps(results_of_three_sides().as_json()))
        (load,) = read["loads"]
        self.assertEqual(len(load["samples"]), 9)
        self.assertEqual(
            load["summary"]["pondage"]["tps"],
            {"median": 2000.0, "min": 200.0, "max": 4000.0, "rounds": 3},
        )
        self.assertEqual(load["ratios"]["pondage"]["direct"]["median"], 2.0)
        self.assertEqual(load["ratios"]["pondage"]["pgcat"]["min"], 4.0)
        self.assertNotIn("cpu_gateway_us", load["summary"]["direct"])

    def test_the_main_table_shows_medians_spread_and_ratio_to_direct(self) -> None:
        results = results_of_three_sides()
        table = tables.load_table(results, results.loads[0])
        self.assertEqual(table.head, ["side", "transactions/s", "to direct", "gateway CPU, us/op"])
        self.assertEqual(table.rows[1], ["pondage", "2,000 (200 - 4,000)", "2.00x", "5.0"])
        self.assertEqual(table.rows[0][-1], "-")

    def test_the_overview_has_a_row_for_each_side_and_a_column_for_each_load(self) -> None:
        results = results_of_three_sides()
        self.assertIsNone(tables.overview_table(results))
        results.loads.append(LoadInfo("one@10", "One client", "pgbench", TPS, (TPS,)))
        results.samples.append(Sample("one@10", "direct", 1, {"tps": 10.0}))
        table = tables.overview_table(results)
        assert table is not None
        self.assertEqual(
            table.head, ["side", "select@10: transactions/s", "one@10: transactions/s"]
        )
        self.assertEqual(
            table.rows[:2], [["direct", "1,000", "10"], ["pondage", "2,000 (2.00x)", "-"]]
        )

    def test_published_ratios_stand_beside_those_to_direct(self) -> None:
        results = results_of_three_sides()
        self.assertIsNone(tables.reported_table(results))
        results.loads.append(
            LoadInfo("mirror@1", "Mirror", "sysbench", TPS, (TPS,), reported="0.2x - 3x")
        )
        for side, tps in (("direct", 10.0), ("pondage", 15.0)):
            results.samples.append(Sample("mirror@1", side, 1, {"tps": tps}))
        table = tables.reported_table(results)
        assert table is not None
        self.assertEqual(table.head, ["to direct", "pondage", "the report's cache"])
        self.assertEqual(table.rows, [["mirror@1", "1.50x", "0.2x - 3x"]])

    def test_the_ratio_table_is_the_same_round_matrix(self) -> None:
        results = results_of_three_sides()
        table = tables.ratio_table(results, results.loads[0])
        assert table is not None
        self.assertEqual(table.rows[1], ["pondage /", "2.00x", "1.00x", "4.00x"])

    def test_a_side_without_samples_is_in_no_table(self) -> None:
        results = results_of_three_sides()
        results.samples = [s for s in results.samples if s.side != "pgcat"]
        table = tables.load_table(results, results.loads[0])
        self.assertEqual([row[0] for row in table.rows], ["direct", "pondage"])
        self.assertIsNone(tables.ratio_table(results, results.loads[0]))

    def test_without_direct_there_is_no_ratio_to_it(self) -> None:
        results = results_of_three_sides()
        results.samples = [s for s in results.samples if s.side != "direct"]
        self.assertNotIn("to direct", tables.load_table(results, results.loads[0]).head)

    def test_frequent_system_calls_are_listed_most_frequent_first(self) -> None:
        results = results_of_three_sides()
        counts = {"recvfrom": 1.5, "sendto": 2.0, "mmap": 0.001}
        results.system_calls.append(SystemCalls("select@10", "pondage", 100, counts))
        table = tables.system_call_table(results)
        assert table is not None
        self.assertEqual(
            table.rows, [["select@10", "pondage", "100", "3.50", "sendto 2.00, recvfrom 1.50"]]
        )


def results_of_a_curve() -> Results:
    """Two numbers of clients of one transaction, and a load that is in no curve."""
    results = results_of_three_sides()
    results.sides[2] = SideInfo("direct-statements", "direct", "PostgreSQL itself", "", "")
    title = "payment, 10 warehouses"
    results.loads += [
        LoadInfo(f"payment@10-{n}", f"{title}, {n}", "pgbench", TPS, (TPS,), title, n)
        for n in (1000, 10)
    ]
    for clients, side, tps in (
        (10, "direct", 100.0), (10, "direct-statements", 60.0), (10, "pondage", 90.0),
        (1000, "direct", 20.0), (1000, "pondage", 110.0),
    ):  # fmt: skip
        results.samples.append(Sample(f"payment@10-{clients}", side, 1, {"tps": tps}))
    return results


class Curves(unittest.TestCase):
    def test_loads_of_a_curve_are_a_table_by_clients_and_in_no_overview(self) -> None:
        results = results_of_a_curve()
        (curve,) = tables.curves_of(results)
        table = tables.curve_table(results, curve)
        self.assertEqual(table.head, ["clients", "direct", "pondage", "direct-statements"])
        self.assertEqual(
            table.rows,
            [["10", "100", "90 (0.90x)", "60 (0.60x)"], ["1,000", "20", "110 (5.50x)", "-"]],
        )
        self.assertIsNone(tables.overview_table(results))

    def test_one_number_of_clients_is_a_table_and_no_picture(self) -> None:
        results = results_of_a_curve()
        del results.loads[-1]
        (curve,) = tables.curves_of(results)
        self.assertEqual(len(tables.curve_table(results, curve).rows), 1)
        self.assertEqual([c.name for c in charts_of(results) if c.name.startswith("curve")], [])

    def test_they_are_told_at_the_end_in_columns(self) -> None:
        self.assertEqual(
            report.curves(results_of_a_curve()),
            "payment, 10 warehouses: transactions/s\n"
            "clients  direct      pondage  direct-statements\n"
            "10          100   90 (0.90x)         60 (0.60x)\n"
            "1,000        20  110 (5.50x)                  -\n",
        )
        self.assertEqual(report.curves(results_of_three_sides()), "")

    def test_a_line_for_each_side_is_higher_where_there_is_more(self) -> None:
        chart = charts_of(results_of_a_curve())[0]
        self.assertEqual(chart.name, "curve-payment-10-warehouses")
        lines = list(ElementTree.fromstring(chart.svg).iter(f"{SVG}polyline"))
        self.assertEqual(len(lines), 3)
        first, second = (place.split(",") for place in lines[0].get("points", "").split())
        self.assertLess(float(first[0]), float(second[0]))
        self.assertLess(float(first[1]), float(second[1]))
        dashed = [line.get("stroke-dasharray") is not None for line in lines]
        self.assertEqual(dashed, [False, False, True])

    def test_latencies_have_pictures_and_tables_by_clients_too(self) -> None:
        results = results_of_a_curve()
        p99 = Metric("p99_ms", "p99", "ms", 3)
        results.loads[-2:] = [replace(load, metrics=(TPS, p99)) for load in results.loads[-2:]]
        for clients, value in ((10, 0.5), (1000, 900.0)):
            told = {"tps": 1.0, "p99_ms": value}
            results.samples.append(Sample(f"payment@10-{clients}", "pondage", 2, told))
        names = [chart.name for chart in charts_of(results)]
        self.assertEqual(names[:2], [f"curve-payment-10-warehouses{s}" for s in ("", "-p99-ms")])
        self.assertFalse([name for name in names if name.startswith("payment")])
        (curve,) = tables.curves_of(results)
        ((metric, table),) = tables.metric_tables(results, curve)
        self.assertEqual(metric, p99)
        self.assertEqual(
            table.rows, [["10", "-", "0.500", "-"], ["1,000", "-", "900.000", "-"]]
        )

    def test_what_is_left_with_many_clients_is_told_of_every_side(self) -> None:
        results = results_of_a_curve()
        (curve,) = tables.curves_of(results)
        table = tables.staying_table(results, curve)
        assert table is not None
        self.assertEqual(table.head, ["side", "1,000 clients / 100", "1,000 clients / its best"])
        self.assertEqual(
            table.rows,
            [["direct", "-", "0.20"], ["pondage", "-", "1.00"], ["direct-statements", "-", "-"]],
        )
        results.loads.append(replace(curve.loads[0], key="payment@10-100", clients=100))
        results.samples.append(Sample("payment@10-100", "direct", 1, {"tps": 80.0}))
        (curve,) = tables.curves_of(results)
        table = tables.staying_table(results, curve)
        assert table is not None
        self.assertEqual(table.rows[0], ["direct", "0.25", "0.20"])
        few = tables.Curve(curve.title, curve.loads[:2])
        self.assertIsNone(tables.staying_table(results, few))

    def test_trains_have_a_colour_of_their_own(self) -> None:
        results = results_of_a_curve()
        results.sides.append(SideInfo("pondage-trains", "pondage", "Pondage", "", ""))
        results.samples.append(Sample("payment@10-10", "pondage-trains", 1, {"tps": 1.0}))
        lines = ElementTree.fromstring(charts_of(results)[0].svg).iter(f"{SVG}polyline")
        colours = [line.get("stroke") for line in lines]
        self.assertEqual(len(colours), 4)
        self.assertNotEqual(colours[3], colours[1])

    def test_powers_of_ten_are_around_what_there_is(self) -> None:
        self.assertEqual(powers([0.5, 900.0]), [0.1, 1.0, 10.0, 100.0, 1000.0])
        self.assertEqual(powers([10.0]), [10.0, 100.0])
        self.assertEqual(powers([]), [1.0, 10.0])
        self.assertEqual(powers([0.0, 20.0]), [10.0, 100.0])

    def test_the_grid_has_round_numbers_and_room_for_all(self) -> None:
        for largest, step in ((0.0, 1.0), (100.0, 25.0), (101.0, 50.0), (4_270.0, 2000.0)):
            self.assertEqual(grid_step(largest), step)

    def test_a_curve_without_figures_has_no_picture(self) -> None:
        results = results_of_a_curve()
        results.samples.clear()
        self.assertEqual(charts_of(results), [])


class Pictures(unittest.TestCase):
    def test_charts_are_well_formed_and_longer_bars_mean_more(self) -> None:
        charts = charts_of(results_of_three_sides())
        self.assertEqual(
            [chart.name for chart in charts], ["select-10-tps", "select-10-cpu-gateway-us"]
        )
        root = ElementTree.fromstring(charts[0].svg)
        widths = [float(bar.get("width", "")) for bar in root.iter(f"{SVG}rect")]
        self.assertEqual(len(widths), 3)
        self.assertAlmostEqual(widths[1] / widths[0], 2.0, places=2)
        self.assertAlmostEqual(widths[2] / widths[0], 0.5, places=2)

    def test_labels_are_escaped(self) -> None:
        svg = bar_chart("a < b & c", "<x>", [Bar("</svg>", "direct", 1, 1, 1, '"<&>"')])
        texts = [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]
        self.assertEqual(texts, ["a < b & c", "<x>", "</svg>", '"<&>"'])

    def test_nothing_and_negative_values_can_be_drawn(self) -> None:
        ElementTree.fromstring(bar_chart("empty", "", []))
        root = ElementTree.fromstring(bar_chart("t", "", [Bar("s", "new", -5, -9, 0, "-5")]))
        (bar,) = root.iter(f"{SVG}rect")
        self.assertEqual(bar.get("width"), "0.0")

    def test_colours_follow_the_theme_of_the_page(self) -> None:
        self.assertIn("prefers-color-scheme:dark", bar_chart("t", "", []))


class Balanced(HTMLParser):
    """Fails on tags that do not nest; tells what the page loads from elsewhere."""

    VOID = frozenset({"meta", "br", "img", "link"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


class Files(unittest.TestCase):
    def write(self, results: Results) -> Path:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        directory = Path(temporary.name) / "new" / "report"
        report.write(results, directory)
        return directory

    def test_a_report_is_json_markdown_html_and_the_pictures_it_names(self) -> None:
        directory = self.write(results_of_a_curve())
        names = {path.name for path in directory.iterdir()}
        self.assertLessEqual({"results.json", "report.md", "report.html"}, names)
        text = (directory / "report.md").read_text()
        for name in names:
            if name.endswith(".svg"):
                self.assertIn(f"({name})", text)
                ElementTree.fromstring((directory / name).read_text())

    def test_markdown_tables_have_as_many_cells_in_every_row(self) -> None:
        text = (self.write(results_of_three_sides()) / "report.md").read_text()
        for block in text.split("\n\n"):
            lines = [line for line in block.splitlines() if line.startswith("|")]
            counts = {line.replace("\\|", "").count("|") for line in lines}
            self.assertLessEqual(len(counts), 1, block)
        self.assertIn("2 x A\\|B", text)

    def test_the_page_nests_well_and_loads_nothing(self) -> None:
        page = Balanced()
        page.feed((self.write(results_of_three_sides()) / "report.html").read_text())
        self.assertEqual((page.open, page.loaded), ([], []))
        self.assertIn("a <b> & c\n", "".join(page.text))

    def test_a_page_with_a_curve_nests_well_too(self) -> None:
        page = Balanced()
        page.feed((self.write(results_of_a_curve()) / "report.html").read_text())
        self.assertEqual(page.open, [])

    def test_failures_and_refusals_are_told_in_both(self) -> None:
        results = results_of_three_sides()
        results.failures.append(Failure("select@10", "pgcat", 2, "pgcat ended\nlog line"))
        results.skipped["select@10", "odyssey"] = "it can not"
        results.interrupted = True
        directory = self.write(results)
        for name in ("report.md", "report.html"):
            text = (directory / name).read_text()
            self.assertIn("pgcat FAILED in round 2: pgcat ended", text)
            self.assertIn("odyssey takes no part: it can not.", text)
            self.assertIn("Interrupted", text)
