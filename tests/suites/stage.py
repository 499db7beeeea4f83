"""A private PostgreSQL, and Pondage in front of it, for one run of a suite."""

import contextlib
import pathlib
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parent.parent.parent.resolve()
sys.path.insert(0, str(ROOT / "bench"))

import hosts  # noqa: E402
from drivers.base import Place, Suite  # noqa: E402
from pondage_bench.pgwire import Client, Endpoint, PgError  # noqa: E402
from pondage_bench.postgres import Cluster, Upstream  # noqa: E402
from pondage_bench.processes import (  # noqa: E402
    Supervisor, built_pondage, free_port, stage, wait_until,
)

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
postgres = ["{door}:{port}"]
http = "off"
[auth]
method = "hba"
hba_file = "{hba}"
[pool]
{pool}
pool_size = 60
[databases."*"]
host = "{host}"
port = {server_port}
"""


@contextlib.contextmanager
def place(
    suite: Suite, side: str, home: pathlib.Path, directory: pathlib.Path, kept: pathlib.Path,
    slow: bool,
) -> Iterator[Place]:
    """A fresh cluster with the suite's database, reached directly or through Pondage.

    Where it is `slow`, Pondage is on a host of its own, with a bad network between.
    """
    with Supervisor(directory) as supervisor:
        settings = SETTINGS | suite.settings
        far = hosts.Hosts(supervisor, kept) if slow and side != DIRECT else None
        known = supervisor.directory / "hba.conf"
        rules = ["local all all trust", *suite.hba, "host all all 0.0.0.0/0 trust",
                 "local replication all trust", "host replication all 0.0.0.0/0 trust"]
        supervisor.write(known, "".join(f"{rule}\n" for rule in rules))
        settings |= {"hba_file": str(known)}
        if far:
            settings |= {"listen_addresses": "*"}
        cluster = Cluster(supervisor, settings=settings)
        cluster.bindir = suite.bindir(home) or cluster.bindir
        cluster.start()
        upstream = cluster.upstream(suite.database)
        if suite.database != "postgres":
            with cluster.client() as client:
                client.query(f"CREATE DATABASE {suite.database} TEMPLATE template0")
        with cluster.client(suite.database) as client:
            for statement in suite.prepare:
                client.query(statement)
        endpoint = upstream.endpoint()
        if side != DIRECT:
            endpoint = start_pondage(supervisor, upstream, suite, POOLS[side], far, kept)
        yield Place(
            endpoint.host, endpoint.port, upstream.user, suite.database,
            upstream.socket_directory, cluster.port, cluster.bindir,
            supervisor.subdirectory("work"), kept, far,
        )


def start_pondage(
    supervisor: Supervisor, upstream: Upstream, suite: Suite, pool: str,
    far: hosts.Hosts | None, kept: pathlib.Path,
) -> Endpoint:
    """In front of the server, on this host or on the `far` one; where its clients go."""
    door, host = "127.0.0.1", str(upstream.socket_directory)
    if far:
        door, host = hosts.GATEWAY, hosts.SERVER
    port = free_port()
    directory = supervisor.subdirectory("pondage")
    configuration = directory / "pondage.toml"
    users = [f'[users.{name}]\npassword = "{word}"\n' for name, word in suite.users.items()]
    supervisor.write(configuration, "".join([CONFIGURATION.format(
        door=door, port=port, pool=pool, host=host, server_port=upstream.port,
        hba=supervisor.directory / "hba.conf",
    ), *users]))
    command = [stage(built_pondage(), directory), "serve", "-c", configuration]
    process = supervisor.start(
        "pondage", far.over_there(command) if far else command, log=kept / "pondage.log",
        as_service=far is None,
    )
    endpoint = Endpoint(door, port, upstream.user, upstream.database)

    def complaint() -> str | None:
        try:
            with Client(endpoint, timeout=10.0) as client:
                client.query("SELECT 1")
        except (OSError, PgError) as error:
            return str(error)
        return None

    wait_until("Pondage answered", START_SECONDS, complaint, process)
    return endpoint
