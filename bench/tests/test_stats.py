import unittest

from pondage_bench.stats import Spread, percentile, same_round_ratios


class Spreads(unittest.TestCase):
    def test_median_of_an_odd_count_is_the_middle_value(self) -> None:
        spread = Spread.of([30.0, 10.0, 20.0])
        self.assertEqual((spread.median, spread.low, spread.high, spread.count), (20, 10, 30, 3))

    def test_median_of_an_even_count_is_between_the_middle_two(self) -> None:
        self.assertEqual(Spread.of([1.0, 2.0, 4.0, 100.0]).median, 3.0)

    def test_no_values_have_no_spread(self) -> None:
        with self.assertRaises(ValueError):
            Spread.of([])


class Ratios(unittest.TestCase):
    def test_ratios_pair_values_of_the_same_round(self) -> None:
        fast, slow = {1: 20.0, 2: 300.0}, {1: 10.0, 2: 100.0}
        self.assertEqual(same_round_ratios(fast, slow), [2.0, 3.0])

    def test_a_disturbed_round_does_not_bend_the_ratio(self) -> None:
        # In round 2 the machine was ten times slower, for both sides alike.
        ratios = same_round_ratios({1: 200.0, 2: 20.0, 3: 200.0}, {1: 100.0, 2: 10.0, 3: 100.0})
        self.assertEqual(Spread.of(ratios), Spread(2.0, 2.0, 2.0, 3))

    def test_a_round_missing_on_either_side_is_left_out(self) -> None:
        self.assertEqual(same_round_ratios({1: 4.0, 2: 6.0}, {2: 3.0, 3: 9.0}), [2.0])

    def test_a_base_of_zero_has_no_ratio(self) -> None:
        self.assertEqual(same_round_ratios({1: 4.0}, {1: 0.0}), [])


class Percentiles(unittest.TestCase):
    def test_nearest_rank_of_a_hundred_values(self) -> None:
        values = [float(n) for n in range(1, 101)]
        self.assertEqual(percentile(values, 50), 50.0)
        self.assertEqual(percentile(values, 99), 99.0)
        self.assertEqual(percentile(values, 100), 100.0)

    def test_every_percentile_of_one_value_is_that_value(self) -> None:
        self.assertEqual(percentile([7.0], 1), 7.0)
        self.assertEqual(percentile([7.0], 99), 7.0)

    def test_percentiles_out_of_range_are_refused(self) -> None:
        for percent in (0.0, -1.0, 100.1):
            with self.assertRaises(ValueError):
                percentile([1.0], percent)
