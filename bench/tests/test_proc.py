import os
import subprocess
import sys
import time
import unittest

from pondage_bench import proc

STAT = (
    "4242 (post (gres) x) S 1 4242 4242 0 -1 4194560 1000 200000 0 5 "
    "120 80 3000 500 20 0 1 0 8000000 230000000 6000 18446744073709551615"
)
CHILD_TIMEOUT = 30.0

# Uses CPU in a grandchild that it reaps, then says so and waits to be ended.
SPENDER = """
import os, sys, time
pid = os.fork()
if pid == 0:
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    os._exit(0)
os.waitpid(pid, 0)
print("reaped", flush=True)
sys.stdin.read()
"""


class Parsing(unittest.TestCase):
    def test_a_name_with_spaces_and_parentheses_does_not_shift_the_fields(self) -> None:
        stat = proc.parse_stat(STAT)
        self.assertEqual((stat.pid, stat.comm, stat.ppid), (4242, "post (gres) x", 1))
        self.assertEqual((stat.utime, stat.stime, stat.cutime, stat.cstime), (120, 80, 3000, 500))

    def test_time_of_reaped_children_counts(self) -> None:
        self.assertEqual(proc.parse_stat(STAT).ticks, 120 + 80 + 3000 + 500)

    def test_memory_fields_become_bytes_and_other_lines_are_ignored(self) -> None:
        text = "Name:\tpondage\nThreads:\t4\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n"
        self.assertEqual(proc.parse_kib_fields(text), {"VmHWM": 2 << 20, "VmRSS": 1 << 20})

    def test_idle_and_waiting_for_disks_are_not_busy(self) -> None:
        text = "cpu  100 10 50 99999 8888 3 4 5 7 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
        self.assertEqual(proc.parse_busy_ticks(text), 100 + 10 + 50 + 3 + 4 + 5)

    def test_something_else_than_the_sum_of_processors_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            proc.parse_busy_ticks("cpu0 1 2 3 4 5 6 7 8\n")


class LiveProcesses(unittest.TestCase):
    def test_a_tree_contains_its_children_and_the_cpu_of_those_it_reaped(self) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", SPENDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            self.assertEqual(child.stdout.readline().strip(), b"reaped")
            self.assertIn(child.pid, proc.tree_pids(os.getpid()))
            # The reaped grandchild alone used 0.3 s; ticks are 0.01 s.
            self.assertGreaterEqual(proc.tree_cpu_seconds(child.pid), 0.28)
            memory = proc.memory_of([child.pid])
            self.assertGreater(memory.rss, 1 << 20)
            self.assertGreaterEqual(memory.peak_rss, memory.rss)
            child.communicate(timeout=CHILD_TIMEOUT)

    def test_a_process_that_ended_holds_no_memory_and_uses_no_cpu(self) -> None:
        child = subprocess.Popen([sys.executable, "-c", "pass"])
        child.wait(CHILD_TIMEOUT)
        self.assertEqual(proc.memory_of([child.pid]).rss, 0)
        self.assertEqual(proc.tree_cpu_seconds(child.pid), 0.0)

    def test_settling_ends_at_once_when_no_process_comes_or_goes(self) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", SPENDER], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        ) as child:
            began = time.monotonic()
            while len(proc.tree_pids(child.pid)) < 2:  # its child is at work
                self.assertLess(time.monotonic() - began, CHILD_TIMEOUT)
            proc.settle(child.pid)
            child.communicate(timeout=CHILD_TIMEOUT)
        self.assertLess(time.monotonic() - began, proc.SETTLE_SECONDS + 1)
