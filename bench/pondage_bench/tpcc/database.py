"""Making TPC-C's database, and a fresh copy of it for each run."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..postgres import Cluster
from .size import C_LAST_LOADED, Size

SQL = Path(__file__).parent
# Where CREATE DATABASE can be told not to write all it copies to the WAL.
CHOOSES_STRATEGY = 150000
UPDATED = ("warehouse", "district", "customer", "stock")


def create(cluster: Cluster, name: str, size: Size) -> None:
    """The database `name` with procedures, filled: a warehouse at a time on each processor."""
    cluster.create_database(name)
    with cluster.client(name) as client:
        client.query((SQL / "schema.sql").read_text())
        client.query((SQL / "fill.sql").read_text())
        client.query(f"CALL fill.items({size.items})")

    def fill(warehouse: int) -> None:
        with cluster.client(name) as client:
            client.query(
                f"CALL fill.warehouse({warehouse}, {size.customers}, {size.items},"
                f" {C_LAST_LOADED})"
            )

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(1, size.warehouses + 1)))
    with cluster.client(name) as client:
        client.query((SQL / "keys.sql").read_text())
        client.query("DROP SCHEMA fill CASCADE")
        client.query((SQL / "procedures.sql").read_text())
        client.query("VACUUM (ANALYZE, FREEZE)")
        client.query("CHECKPOINT")


def copy(cluster: Cluster, source: str, name: str) -> None:
    """`name` anew as `source` is, so that every run begins with the same; in memory, if it can.

    Making a database is a checkpoint, after which the first change of each page writes all of it to
    the WAL. A short run would measure little else, so that is done here, by locking a row of each.
    """
    drop(cluster, name)
    with cluster.client() as client:
        (row,) = client.query("SHOW server_version_num")
        strategy = " STRATEGY file_copy" if int(row[0] or 0) >= CHOOSES_STRATEGY else ""
        client.query(f"CREATE DATABASE {name} TEMPLATE {source}{strategy}")
    with cluster.client(name) as client:
        able = client.query("SELECT 1 FROM pg_extension WHERE extname = 'pg_prewarm'")
    if able:
        cluster.fill_buffers(name, "%")
    with cluster.client(name) as client:
        for table in UPDATED:
            client.query(
                "SELECT count(*) FROM (SELECT 1 FROM"
                f" {table} WHERE ctid::text LIKE '%,1)' FOR NO KEY UPDATE) AS first_rows"
            )


def drop(cluster: Cluster, name: str) -> None:
    with cluster.client() as client:
        client.query(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
