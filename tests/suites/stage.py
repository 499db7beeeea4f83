"""A private PostgreSQL, and Pondage in front of it, for one run of a suite."""

import contextlib
import os
import pathlib
import socket
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parent.parent.parent.resolve()
sys.path.insert(0, str(ROOT / "bench"))

from drivers.base import Place, Suite  # noqa: E402
from pondage_bench.pgwire import Client, Endpoint, PgError  # noqa: E402
from pondage_bench.postgres import Cluster, Upstream  # noqa: E402
from pondage_bench.processes import Supervisor, free_port, stage, wait_until  # noqa: E402

DIRECT, SESSION, ONCE, TRANSACTION = SIDES = "direct", "session", "session-once", "transaction"
# What each side sets in Pondage's pool. Once: a server that somebody has had is closed.
POOLS = {
    SESSION: 'mode = "session"',
    ONCE: 'mode = "session"\nserver_lifetime = "1ms"',
    TRANSACTION: 'mode = "transaction"',
}
START_SECONDS = 30.0
# A cluster lives for one run: nothing of it is worth a flush.
SETTINGS = {
    "listen_addresses": "127.0.0.1", "fsync": "off", "max_connections": "200",
    "max_wal_size": "4GB", "autovacuum": "on",
}
# The defaults, with room for as many sessions as the suites hold at once.
CONFIGURATION = """\
[listen]
postgres = ["127.0.0.1:{port}"]
http = "off"
[auth]
method = "trust"
[pool]
{pool}
pool_size = 60
[databases."*"]
host = "{host}"
port = {server_port}
"""


def binary() -> pathlib.Path:
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = pathlib.Path(os.environ.get("PONDAGE", target / "release/pondage"))
    if not found.is_file():
        raise SystemExit(f"{found} is not there: `make build`, or PONDAGE=/path/to/pondage")
    return found


@contextlib.contextmanager
def place(
    suite: Suite, side: str, home: pathlib.Path, directory: pathlib.Path, kept: pathlib.Path,
    slow: bool,
) -> Iterator[Place]:
    """A fresh cluster with the suite's database, reached directly or through Pondage.

    Where it is `slow`, there is a slow network on both sides of Pondage.
    """
    with Supervisor(directory) as supervisor:
        cluster = Cluster(supervisor, settings=SETTINGS | suite.settings)
        cluster.bindir = suite.bindir(home) or cluster.bindir
        cluster.start()
        upstream = cluster.upstream(suite.database)
        with cluster.client() as client:
            client.query(f"CREATE DATABASE {suite.database} TEMPLATE template0")
        with cluster.client(suite.database) as client:
            for statement in suite.prepare:
                client.query(statement)
        port = cluster.port
        if side != DIRECT:
            host, to = str(upstream.socket_directory), cluster.port
            if slow:
                host, to = "127.0.0.1", start_slow(supervisor, cluster.port, kept)
            port = start_pondage(supervisor, upstream, side, host, to, kept)
            if slow:
                port = start_slow(supervisor, port, kept)
        yield Place(
            "127.0.0.1", port, upstream.user, suite.database, upstream.socket_directory,
            cluster.port, cluster.bindir, supervisor.subdirectory("work"), kept,
        )


def start_slow(supervisor: Supervisor, to: int, kept: pathlib.Path) -> int:
    """A slow way to the port `to`; the port to go there by."""
    port = free_port()
    # As whoever runs this: the checkout may be closed to the service user.
    process = supervisor.start(
        "slow network", [sys.executable, ROOT / "tests/suites/slow.py", port, to],
        log=kept / "slow.log", as_service=False,
    )

    def complaint() -> str | None:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
        except OSError as error:
            return str(error)
        return None

    wait_until("the slow network listened", START_SECONDS, complaint, process)
    return port


def start_pondage(
    supervisor: Supervisor, upstream: Upstream, mode: str, host: str, to: int, kept: pathlib.Path
) -> int:
    """In front of the server at `host` and the port `to`; the port for its clients."""
    port = free_port()
    directory = supervisor.subdirectory("pondage")
    configuration = directory / "pondage.toml"
    supervisor.write(configuration, CONFIGURATION.format(
        port=port, pool=POOLS[mode], host=host, server_port=to,
    ))
    process = supervisor.start(
        "pondage", [stage(binary(), directory), "serve", "-c", configuration],
        log=kept / "pondage.log",
    )
    endpoint = Endpoint("127.0.0.1", port, upstream.user, upstream.database)

    def complaint() -> str | None:
        try:
            with Client(endpoint, timeout=10.0) as client:
                client.query("SELECT 1")
        except (OSError, PgError) as error:
            return str(error)
        return None

    wait_until("Pondage answered", START_SECONDS, complaint, process)
    return port
