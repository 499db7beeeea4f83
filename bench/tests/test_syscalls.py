import unittest

from pondage_bench.syscalls import parse_counts

TABLE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.10    0.060100           3     20000           sendto
 30.05    0.030050           2     15000      1200 recvfrom
  9.85    0.009850           1      9850           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.100000           2     44850      1200 total
"""


class Counts(unittest.TestCase):
    def test_calls_with_and_without_errors_are_counted_and_the_total_is_not(self) -> None:
        self.assertEqual(
            parse_counts(TABLE), {"sendto": 20000, "recvfrom": 15000, "epoll_wait": 9850}
        )

    def test_an_empty_table_has_no_calls(self) -> None:
        self.assertEqual(parse_counts(""), {})
