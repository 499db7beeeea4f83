import unittest

from pondage_bench import prometheus

PAGE = """\
# HELP pondage_cache_hits_total Answered from memory.
# TYPE pondage_cache_hits_total counter
pondage_cache_hits_total{database="a b}",user="x"} 3
pondage_cache_hits_total{database="c",user="x"} 4
pondage_cache_bytes 1.5e3

pondage_up 1 1700000000000
"""


class Pages(unittest.TestCase):
    def test_labels_are_added_up(self) -> None:
        expected = {
            "pondage_cache_hits_total": 7.0,
            "pondage_cache_bytes": 1500.0,
            "pondage_up": 1.0,
        }
        self.assertEqual(prometheus.parse(PAGE), expected)


if __name__ == "__main__":
    unittest.main()
