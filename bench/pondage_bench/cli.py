"""The command line: chooses a workload, its sides and its sizes, and runs it.

Exit status: 0 all sides answered, 1 one failed, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType

from . import machine, report, rounds
from .idle import allow_open_files
from .loads import Context, Load
from .pgbench import Amount
from .pgwire import PgError
from .postgres import Cluster, default_settings
from .processes import BenchError, Supervisor, pondage_binary
from .results import Results
from .rounds import say
from .sides import Side, parse_peers, select
from .workloads import WORKLOADS, Options, Workload
from .workloads.procedure import Procedure

REPOSITORY = machine.REPOSITORY
DEFAULT_OUT = REPOSITORY / "bench" / "out"
TINY = Options(
    scales=(1,), clients=4, idle_clients=50, statements=50, crowd=60, active=4, rows=1000,
    threads=(2,), warm_up=1, warehouses=(2,), customers=30, callers=(4,),
)  # fmt: skip
CLIENTS, CALLERS = 56, (1, 2, 10, 50, 100, 200, 500, 1000)
EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


@dataclass(frozen=True)
class Run:
    """A checked command line."""

    workload: Workload
    sides: list[Side]
    named: list[str]
    options: Options
    loads: list[Load]
    amount: Amount
    rounds: int
    tiny: bool
    settings: dict[str, str]
    out: Path
    work_directory: Path


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_positive(part) for part in _names(text))


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got `{text}`")
    return name.strip(), value.strip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m pondage_bench",
        description="Runs a workload through PostgreSQL, Pondage and its rivals, side by side.",
        epilog="BENCH_PEERS=name=path,... adds binaries, e.g. pgbouncer125=/opt/pgbouncer.",
    )
    add = parser.add_argument
    add("workload", choices=sorted(WORKLOADS))
    add("--rounds", type=_positive, default=3)
    add("--seconds", type=_positive, default=10, help="of each run")
    add("--sides", type=_names, default=[], help="comma-separated; default: all there are")
    add("--loads", type=_names, default=[], help="comma-separated; default: all")
    add("--scales", type=_numbers, default=(), help="of pgbench; default: the workload's")
    add("--clients", type=_numbers, default=(), help="a list for `procedure`; default 56")
    add("--idle-clients", type=_positive, default=5000)
    add("--crowd", type=_positive, default=10_000, help="clients of `connect`'s crowd")
    add("--active", type=_positive, default=200, help="of the crowd, those that do something")
    add("--statements", type=_positive, default=100_000, help="of each thread of `prepared`")
    add("--rows", type=_positive, default=1_000_000, help="of the table of `cache`")
    add("--threads", type=_numbers, default=(1, 4, 8), help="of sysbench in `cache`")
    add("--warm-up", type=_positive, help="seconds not measured; default: the workload's")
    add("--warehouses", type=_numbers, default=(10, 60), help="of `procedure`")
    add("--customers", type=_positive, default=3000, help="of each district of `procedure`")
    add("--pool-size", type=_positive, default=8, help="of gateways in `procedure`")
    add("--pondage", type=Path, default=pondage_binary(), help="its binary; also $PONDAGE")
    add("--out", type=Path, help="directory of the reports; default bench/out/WORKLOAD-TIME")
    add("--work-dir", type=Path, default=Path(tempfile.gettempdir()), help="of the database")
    add(
        "--setting", type=_setting, action="append", default=[], metavar="NAME=VALUE",
        help="of PostgreSQL; may be given several times",
    )  # fmt: skip
    add("--tiny", action="store_true", help="one very small round, to see that everything works")
    return parser


def _checked(arguments: Sequence[str]) -> Run:
    """Raises BenchError for what the parser can't see."""
    given = _parser().parse_args(arguments)
    workload = WORKLOADS[given.workload]
    peers = parse_peers(os.environ.get("BENCH_PEERS", ""))
    sides = select(workload.sides(given.pondage, peers), given.sides)
    if given.tiny:
        options = TINY
        amount, count = Amount(1, transactions=25), 1
    else:
        scales = given.scales or workload.scales
        options = Options(
            scales=scales,
            clients=_one_number(given.clients, workload),
            idle_clients=given.idle_clients,
            statements=given.statements,
            crowd=max(given.crowd, given.active),
            active=given.active,
            rows=given.rows,
            threads=given.threads,
            warm_up=given.warm_up or workload.warm_up,
            warehouses=given.warehouses,
            customers=given.customers,
            callers=given.clients or CALLERS,
            pool_size=given.pool_size,
        )
        amount, count = Amount(given.seconds), given.rounds
    out = given.out or DEFAULT_OUT / f"{workload.name}-{datetime.now():%Y%m%d-%H%M%S}"
    return Run(
        workload=workload,
        sides=sides,
        named=given.sides,
        options=options,
        loads=_chosen_loads(workload.loads(options), given.loads),
        amount=amount,
        rounds=count,
        tiny=given.tiny,
        settings={**default_settings(), **workload.settings(), **dict(given.setting)},
        out=out,
        work_directory=given.work_dir,
    )


def _one_number(clients: tuple[int, ...], workload: Workload) -> int:
    if len(clients) > 1 and workload.name != Procedure.name:
        raise BenchError(f"--clients: {workload.name} takes one number")
    return clients[0] if clients else CLIENTS


def _chosen_loads(loads: Sequence[Load], wanted: Sequence[str]) -> list[Load]:
    """By key, or by the part of it before `@`; `*` stands for anything."""

    def is_meant(load: Load, pattern: str) -> bool:
        key = load.info.key
        return any(fnmatch.fnmatchcase(name, pattern) for name in (key, key.partition("@")[0]))

    unknown = [name for name in wanted if not any(is_meant(load, name) for load in loads)]
    if unknown:
        known = dict.fromkeys(load.info.key.partition("@")[0] for load in loads)
        raise BenchError(f"no load {', '.join(unknown)}; there are {', '.join(known)}")
    return [load for load in loads if not wanted or any(is_meant(load, name) for name in wanted)]


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str]) -> int:
    # TERM must stop what was started, as Ctrl-C does, and so must INT where a shell that starts
    # commands in the background made it ignored.
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    allow_open_files()
    try:
        run = _checked(arguments)
        missing = run.workload.missing()
    except BenchError as error:
        say(f"error: {error}")
        return EXIT_USAGE
    if missing is not None:
        say(f"{run.workload.name} is skipped: {missing}")
        return 0
    try:
        if all(side.kind != "pondage" for side in run.sides):
            say("pondage takes no part: no binary found (cargo build --release, or --pondage PATH)")
        results = _execute(run)
    except (BenchError, PgError, OSError) as error:
        say(f"error: {error}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        say("interrupted; everything that was started is stopped")
        return EXIT_INTERRUPTED
    for path in report.write(results, run.out):
        print(path)
    curves = report.curves(results)
    if curves:
        say(curves)
    if results.interrupted:
        say("interrupted; everything that was started is stopped; the reports hold what was run")
        return EXIT_INTERRUPTED
    for failure in results.failures:
        say(f"failed: {failure.load} round {failure.round} {failure.side}: {failure.message}")
    return EXIT_FAILED if results.failures else 0


def _execute(run: Run) -> Results:
    directory = Path(tempfile.mkdtemp(prefix="pondage-bench-", dir=run.work_directory)) / "run"
    directory.parent.chmod(0o755)
    try:
        with Supervisor(directory) as supervisor:
            say(f"sides: {', '.join(side.name for side in run.sides)}")
            described = machine.describe(directory)
            cluster = Cluster(supervisor, run.settings)
            cluster.start()
            notes = run.workload.prepare(cluster, run.options)
            results = Results(
                workload=run.workload.name,
                title=run.workload.title,
                machine={**described, "postgresql": cluster.version()},
                options={
                    "rounds": str(run.rounds),
                    **run.workload.shown(run.options, run.amount),
                },
                postgres=cluster.changed_settings(),
                loads=[load.info for load in run.loads],
                notes=list(notes),
            )
            context = Context(supervisor, cluster, run.amount, run.tiny)
            try:
                rounds.run(context, run.loads, run.sides, run.named, run.rounds, results)
            except KeyboardInterrupt:
                results.interrupted = True
        return results
    finally:
        directory.parent.rmdir()
