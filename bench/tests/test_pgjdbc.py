import unittest
from unittest import mock

from pondage_bench.pgjdbc import PgjdbcLoad, Summary, missing_tools, parse_summary
from pondage_bench.processes import BenchError
from pondage_bench.sides.base import Direct
from pondage_bench.sides.constant import Constant


class Summaries(unittest.TestCase):
    def test_the_summary_is_found_among_other_lines(self) -> None:
        text = "WARNING: slow\nstatements=6000000 warm_up=19980 seconds=101.250000\n"
        self.assertEqual(parse_summary(text), Summary(6_000_000, 19_980, 101.25))

    def test_output_without_one_is_an_error_that_shows_it(self) -> None:
        for text in ("Connection refused", "statements=0 warm_up=0 seconds=1.0"):
            with self.subTest(text), self.assertRaisesRegex(BenchError, text):
                parse_summary(text)


class Loads(unittest.TestCase):
    def test_a_load_is_named_by_threads_and_texts(self) -> None:
        info = PgjdbcLoad(60, 1, 100_000).info
        self.assertEqual(info.key, "60x1")
        self.assertEqual(info.title, "pgjdbc, 60 threads x 1 text, 100,000 prepared selects each")
        self.assertFalse(info.primary.higher_is_better)

    def test_every_thread_warms_up_until_its_statement_has_a_name(self) -> None:
        self.assertEqual(PgjdbcLoad(1, 1, 100_000).warm_up, 20_000)
        self.assertEqual(PgjdbcLoad(60, 60, 100_000).warm_up, 333)
        self.assertEqual(PgjdbcLoad(10_000, 1, 100_000).warm_up, 10)
        self.assertEqual(PgjdbcLoad(1, 1, 3).warm_up, 3)

    def test_a_server_without_tables_takes_no_part(self) -> None:
        load = PgjdbcLoad(1, 1, 1)
        self.assertIsNotNone(load.refusal(Constant()))
        self.assertIsNone(load.refusal(Direct()))


class Tools(unittest.TestCase):
    def test_what_is_missing_is_named_once(self) -> None:
        with mock.patch("shutil.which", return_value=None):
            self.assertEqual(missing_tools(), "it needs Maven and a JDK 17 or later")
        with mock.patch("shutil.which", return_value="/usr/bin/x"):
            self.assertIsNone(missing_tools())
