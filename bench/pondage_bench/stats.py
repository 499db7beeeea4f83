"""The arithmetic of a report: medians, spreads, and ratios within one round."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """The median of some rounds with the lowest and the highest of them."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Raises ValueError when there is no value."""
        if not values:
            raise ValueError("a spread needs at least one value")
        return cls(statistics.median(values), min(values), max(values), len(values))

    def as_json(self) -> dict[str, float]:
        return {"median": self.median, "min": self.low, "max": self.high, "rounds": self.count}


def same_round_ratios(values: Mapping[int, float], base: Mapping[int, float]) -> list[float]:
    """`values / base` for every round that both have.

    Rounds of one number ran within minutes of each other, so what disturbed the machine disturbed
    both. A ratio of two medians would mix rounds. A round whose base is zero has no ratio.
    """
    return [values[r] / base[r] for r in sorted(values) if base.get(r, 0.0) != 0.0]


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile of values in rising order; ValueError when there is none."""
    if not ordered:
        raise ValueError("a percentile needs at least one value")
    if not 0.0 < percent <= 100.0:
        raise ValueError(f"percentile out of range: {percent}")
    return ordered[math.ceil(percent / 100.0 * len(ordered)) - 1]
