"""Small reads and writes through Redis's protocol, beside redis-server in its three kinds of
persistence and PostgreSQL's own upserts.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from .. import memtier
from ..loads import Load
from ..memtier import KEYS, Shape
from ..pgbench import Amount
from ..postgres import Cluster
from ..redis_loads import DATABASE, RedisLoad
from ..scripts import PAYLOADS, UPSERT, UPSERT_4K, UPSERT_16K, UPSERT_ONE, write_scripts
from ..sides import Peer, Side
from ..sides.redis import PERSISTENCE, PondageRedis, RedisServer, Upserts
from .base import Options, Workload

PIPELINE = 32
# The sizes, each with the script of the same write in SQL.
SIZES = {128: UPSERT, 4096: UPSERT_4K, 16384: UPSERT_16K}
CLIENTS = (128, 512)
# As many bytes of values at most, so that the larger ones fit in memory, too.
DATA_BYTES = 512 << 20


class Redis(Workload):
    name = "redis"
    title = "Small reads and writes in Redis's protocol"

    def missing(self) -> str | None:
        return memtier.missing()

    def settings(self) -> dict[str, str]:
        # A connection for each client of the upserts.
        return {"max_connections": str(max(CLIENTS) + 50)}

    def sides(self, pondage: Path, peers: Sequence[Peer]) -> list[Side]:
        sides: list[Side] = [Upserts()]
        server = shutil.which("redis-server")
        if server is not None:
            sides += [RedisServer(Path(server), mode) for mode in PERSISTENCE]
        if pondage.is_file():
            sides += [
                PondageRedis("pondage", pondage),
                PondageRedis("pondage", pondage, journal=True),
                PondageRedis("pondage", pondage, workers=2),
            ]
        return sides

    def shown(self, options: Options, amount: Amount) -> dict[str, str]:
        return {"each run": f"{amount.seconds} s", "keys": f"{KEYS:,} of 128 B, fewer if larger"}

    def prepare(self, cluster: Cluster, options: Options) -> Sequence[str]:
        write_scripts(cluster.supervisor)
        cluster.create_database(DATABASE)
        with cluster.client(DATABASE) as client:
            client.query("CREATE TABLE upserts (key bytea PRIMARY KEY, val bytea NOT NULL)")
            client.query(
                "INSERT INTO upserts SELECT int4send(n), sha512(int4send(n)) || "
                f"sha512(int4send(-n)) FROM generate_series(1, {KEYS}) n"
            )
            # As memtier's: random, so that nothing is gained by compressing them.
            client.query(
                "CREATE TABLE payloads (size int, n int, val bytea, PRIMARY KEY (size, n))"
            )
            for size in SIZES:
                client.query(
                    f"INSERT INTO payloads SELECT {size}, n, (SELECT string_agg("
                    "sha512(int8send(n * 1000003::int8 + part)), '') "
                    f"FROM generate_series(1, {size // 64}) part) "
                    f"FROM generate_series(1, {PAYLOADS}) n"
                )
            client.query("VACUUM ANALYZE upserts, payloads")
        return []

    def loads(self, options: Options) -> Sequence[Load]:
        loads: list[Load] = []
        for clients in CLIENTS:
            for size in SIZES:
                loads += _matrix(clients, size)
        counter = Shape(CLIENTS[0], 8, 1, 0, 1, counter=True)
        loads.append(RedisLoad("counter", "One hot counter, 128 clients", counter, UPSERT_ONE))
        return loads


def _matrix(clients: int, size: int) -> list[Load]:
    keys = min(KEYS, DATA_BYTES // size)
    loads: list[Load] = []
    for pipeline in (1, PIPELINE):
        deep = f", pipelines of {pipeline}" if pipeline > 1 else ""
        for what, sets, gets in (("write", 1, 0), ("read", 0, 1), ("mixed", 1, 1)):
            key = f"{what}{'-pipelined' if pipeline > 1 else ''}-{clients}@{size}"
            shape = Shape(clients, size, sets, gets, pipeline, keys)
            upsert = SIZES[size] if what == "write" else None
            title = f"{what.capitalize()}, {clients} clients, {size} B{deep}"
            loads.append(RedisLoad(key, title, shape, upsert))
    return loads
