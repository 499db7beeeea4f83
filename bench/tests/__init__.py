"""Tests of the benchmark runner: `python3 -m unittest discover -s bench -t bench`."""
