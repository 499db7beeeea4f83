"""Rounds: every load goes A B C, A B C, A B C, so that a disturbance meets all sides alike."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from . import syscalls
from .loads import Context, Load
from .pgwire import PgError
from .processes import BenchError
from .results import Failure, Results, Sample, SideInfo
from .sides import Side


def say(text: str) -> None:
    """Progress, for people: never on standard output."""
    print(text, file=sys.stderr, flush=True)


class Progress:
    """Counts the runs and guesses when the last one ends."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.began = time.monotonic()

    def step(self, what: str) -> None:
        self.done += 1
        left = (time.monotonic() - self.began) / self.done * (self.total - self.done)
        minutes, seconds = divmod(round(left), 60)
        say(f"[{self.done}/{self.total}] {what}  ({minutes} min {seconds} s left)")


def run(
    context: Context,
    loads: Sequence[Load],
    sides: Sequence[Side],
    named: Collection[str],
    rounds: int,
    results: Results,
) -> None:
    """Fills `results`. A side's failure is written down and the others go on; BenchError if one
    of those that were `named` can't even start.
    """
    able = startable(sides, named, results)
    pairs: list[tuple[Load, Side]] = []
    for load in loads:
        for side in able:
            why = load.refusal(side)
            if why:
                results.skipped[load.info.key, side.name] = why
            else:
                pairs.append((load, side))
    try:
        _measure(context, pairs, rounds, results)
        _count_system_calls(context, loads, able, results)
    finally:
        # Only now is every configuration known, also of a run that is interrupted.
        results.sides = [
            SideInfo(side.name, side.kind, side.description, side.version(), side.configuration)
            for side in able
        ]


def startable(sides: Sequence[Side], named: Collection[str], results: Results) -> list[Side]:
    """Those that can run here; of the others it is told why not. BenchError if one is `named`."""
    able = []
    for side in sides:
        why = side.unavailable()
        if why is None:
            able.append(side)
        elif side.name in named:
            raise BenchError(f"{side.name} can't take part: {why}")
        else:
            results.notes.append(f"{side.name} takes no part: {why}.")
            say(results.notes[-1])
    return able


def _measure(
    context: Context, pairs: Sequence[tuple[Load, Side]], rounds: int, results: Results
) -> None:
    progress = Progress(len(pairs) * rounds)
    for load, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
        takers = [side for _, side in group]
        for number in range(1, rounds + 1):
            for side in takers:
                progress.step(_one(context, load, side, number, results))


def _one(context: Context, load: Load, side: Side, number: int, results: Results) -> str:
    where = f"{load.info.key} round {number} {side.name}"
    try:
        metrics = load.run(replace(context, round=number), side)
    except (BenchError, PgError, OSError) as error:
        results.failures.append(Failure(load.info.key, side.name, number, str(error)))
        return f"{where}: FAILED: {error}"
    results.samples.append(Sample(load.info.key, side.name, number, metrics))
    primary = load.info.primary
    value = f"{metrics[primary.key]:,.{primary.digits}f}"
    return f"{where}: {value} {primary.unit or primary.label}"


def _count_system_calls(
    context: Context, loads: Sequence[Load], sides: Sequence[Side], results: Results
) -> None:
    if not syscalls.available():
        results.notes.append("System calls were not counted: there is no strace on this machine.")
        return
    for load in loads:
        if context.tiny and results.system_calls:
            return  # that it works is seen by now
        for side in sides:
            try:
                calls = load.count_system_calls(context, side)
            except (BenchError, PgError, OSError) as error:
                results.notes.append(
                    f"System calls of {side.name} under {load.info.key} were not counted: {error}"
                )
                continue
            if calls is not None:
                results.system_calls.append(calls)
                say(f"strace {load.info.key} {side.name}: {calls.total:.1f} calls per operation")
