"""Everything one run measured; reports are made from it alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .stats import Spread, same_round_ratios

FORMAT = 1


@dataclass(frozen=True)
class Metric:
    """One measured quantity. `higher_is_better` is None for what is merely told."""

    key: str
    label: str
    unit: str
    digits: int = 1
    higher_is_better: bool | None = False


@dataclass(frozen=True)
class LoadInfo:
    """A load as the report shows it; `primary` is the metric of its ratios and picture."""

    key: str
    title: str
    command: str
    primary: Metric
    metrics: tuple[Metric, ...]
    #: The title that loads share which differ in the number of clients only; they make a curve.
    curve: str = ""
    clients: int = 0
    #: The ratio to its database that others have published for their cache.
    reported: str = ""


@dataclass(frozen=True)
class SideInfo:
    name: str
    kind: str
    description: str
    version: str
    configuration: str


@dataclass(frozen=True)
class Sample:
    """What one side did under one load in one round."""

    load: str
    side: str
    round: int
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Failure:
    """A side that did not answer, or a load that did not end well."""

    load: str
    side: str
    round: int
    message: str


@dataclass(frozen=True)
class SystemCalls:
    """Calls of the gateway, by name, per operation of the load."""

    load: str
    side: str
    operations: int
    per_operation: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.per_operation.values())


@dataclass
class Results:
    """Filled while a workload runs; complete at any moment for what has run so far."""

    workload: str
    title: str
    machine: dict[str, str]
    options: dict[str, str]
    postgres: dict[str, str]
    loads: list[LoadInfo]
    sides: list[SideInfo] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    #: Why a side takes no part in a load, by load and side.
    skipped: dict[tuple[str, str], str] = field(default_factory=dict)
    system_calls: list[SystemCalls] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False

    def side_names(self) -> list[str]:
        return [side.name for side in self.sides]

    def series(self, load: str, side: str, metric: str) -> dict[int, float]:
        """A metric's value by round."""
        return {
            sample.round: sample.metrics[metric]
            for sample in self.samples
            if sample.load == load and sample.side == side and metric in sample.metrics
        }

    def spread(self, load: str, side: str, metric: str) -> Spread | None:
        values = list(self.series(load, side, metric).values())
        return Spread.of(values) if values else None

    def ratio(self, load: str, side: str, base: str, metric: str) -> Spread | None:
        """The median of `side / base` of each round."""
        ratios = same_round_ratios(self.series(load, side, metric), self.series(load, base, metric))
        return Spread.of(ratios) if ratios else None

    def as_json(self) -> dict[str, object]:
        names = self.side_names()
        return {
            "format": FORMAT,
            "workload": self.workload,
            "title": self.title,
            "interrupted": self.interrupted,
            "machine": self.machine,
            "options": self.options,
            "postgres": self.postgres,
            "sides": [vars(side) for side in self.sides],
            "loads": [self._load_as_json(load, names) for load in self.loads],
            "system_calls": [
                {**vars(calls), "per_operation": dict(calls.per_operation), "total": calls.total}
                for calls in self.system_calls
            ],
            "failures": [vars(failure) for failure in self.failures],
            "notes": self.notes,
        }

    def _load_as_json(self, load: LoadInfo, names: list[str]) -> dict[str, object]:
        summary: dict[str, object] = {}
        ratios: dict[str, object] = {}
        for side in names:
            spreads = {m.key: self.spread(load.key, side, m.key) for m in load.metrics}
            summary[side] = {key: s.as_json() for key, s in spreads.items() if s}
            against = {
                base: self.ratio(load.key, side, base, load.primary.key)
                for base in names
                if base != side
            }
            ratios[side] = {base: s.as_json() for base, s in against.items() if s}
        return {
            "key": load.key,
            "title": load.title,
            "command": load.command,
            "curve": load.curve,
            "clients": load.clients,
            "reported": load.reported,
            "primary": load.primary.key,
            "metrics": [vars(metric) for metric in load.metrics],
            "skipped": {s: why for (key, s), why in self.skipped.items() if key == load.key},
            "samples": [
                {"side": s.side, "round": s.round, "metrics": dict(s.metrics)}
                for s in self.samples
                if s.load == load.key
            ],
            "summary": summary,
            "ratios": ratios,
        }
