"""What the reader of a page has before its first command: tables, files, a configuration."""

from dataclasses import dataclass, field
from typing import Any

Table = dict[str, Any]

#: As in "Getting started"; what a page shows of a configuration is put over it.
CONFIGURATION: Table = {
    "listen": {"postgres": ["127.0.0.1:6432"], "http": "127.0.0.1:6433"},
    "auth": {"admin_users": ["admin"]},
    "users": {"admin": {"password": "secret"}, "app": {"password": "secret"}},
    "databases": {"app": {"host": "db.example", "user": "app"}},
}
USERLIST = '"admin" "secret"\n"app" "secret"\n"web" "secret"\n"report" "secret"\n'
PGBOUNCER_INI = """\
[databases]
app = host=db.example

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = 6432
auth_type = scram-sha-256
auth_file = /etc/pgbouncer/userlist.txt
admin_users = admin
"""
#: Absolute, or in the reader's home.
FILES = {
    "userlist.txt": USERLIST,
    "pondage.toml": (
        '[auth]\nusers_file = "userlist.txt"\nadmin_users = ["admin"]\n'
        '[databases.app]\nhost = "db.example"\n'
    ),
    "/etc/pgbouncer/userlist.txt": USERLIST,
    "/etc/pgbouncer/pgbouncer.ini": PGBOUNCER_INI,
    "/etc/pondage/cache.password": "a secret\n",
    "/etc/pondage/query.password": "secret\n",
    "/etc/pondage/pg_hba.conf": "host all all all scram-sha-256\n",
    "/etc/pondage/pg_ident.conf": "",
    "/etc/pondage/userlist.txt": USERLIST,
}


@dataclass(frozen=True)
class Scene:
    #: Run by the superuser, then by `app`, in the database `app`.
    server: str = ""
    sql: str = ""
    configuration: Table = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    #: Of the reader's shell, and what runs beside Pondage.
    variables: dict[str, str] = field(default_factory=dict)
    services: tuple[str, ...] = ()
    #: Typed before the first command, when those run.
    before: str = ""


TRADE = """\
CREATE TABLE customers (id int PRIMARY KEY, name text, city text);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, total numeric DEFAULT 1, open bool,
                     paid bool DEFAULT false);
INSERT INTO customers SELECT n, 'Customer ' || n, 'Linz' FROM generate_series(1, 100) n;
INSERT INTO orders SELECT n, n % 100, n, n % 3 = 0 FROM generate_series(1, 1000) n;
CREATE TABLE stock (item int PRIMARY KEY, amount int);
INSERT INTO stock VALUES (1, 100);
CREATE TABLE users (id int PRIMARY KEY, email text);
INSERT INTO users VALUES (42, 'ada@example.org');
CREATE SCHEMA app;
CREATE TABLE app.items (id int PRIMARY KEY, name text);
"""
BANK = """\
CREATE TABLE accounts (aid int PRIMARY KEY, abalance int, id int UNIQUE, balance int);
INSERT INTO accounts SELECT n, 100, n, 100 FROM generate_series(1, 100) n;
"""
WAREHOUSES = """\
CREATE TABLE warehouse (id int PRIMARY KEY, ytd numeric NOT NULL DEFAULT 0);
CREATE TABLE customer (id int PRIMARY KEY, balance numeric NOT NULL DEFAULT 0);
INSERT INTO warehouse SELECT n FROM generate_series(1, 10) n;
INSERT INTO customer SELECT n FROM generate_series(1, 5000) n;
"""
REDIS: Table = {
    "listen": {"redis": "127.0.0.1:6379"},
    "redis": {"database": "app", "default_user": "app"},
}

SCENES = {
    "docs/cache.md": Scene(sql=TRADE, configuration={"auth": {"admin_users": ["admin", "app"]}}),
    # A machine that is busy makes every statement slow.
    "docs/coalescing.md": Scene(
        sql=BANK, configuration={"pool": {"coalesce_short": "1s", "coalesce_stall": "10s"}},
    ),
    "docs/procedures.md": Scene(sql=WAREHOUSES),
    "docs/production.md": Scene(
        server="GRANT CREATE ON DATABASE app TO app",
        configuration=REDIS,
    ),
    "docs/redis.md": Scene(server="CREATE ROLE kv LOGIN PASSWORD 'secret'", sql=TRADE),
    "docs/redis-sql.md": Scene(
        server="GRANT CREATE ON DATABASE app TO app", sql=TRADE, configuration=REDIS,
    ),
    "docs/migrating-from-redis.md": Scene(
        server="GRANT CREATE ON DATABASE app TO app", configuration=REDIS,
        variables={
            "OLD": "redis://127.0.0.1:6380", "NEW": "redis://app:secret@127.0.0.1:6379",
        },
        services=("redis-server --port 6380 --dir /run",),
        before="until redis-cli -p 6380 PING; do :; done\n"
               "redis-cli -p 6380 SET greeting hello EX 600\n"
               "redis-cli -p 6380 RPUSH parcels one two three",
    ),
    "docs/tracing.md": Scene(
        server="ALTER ROLE app REPLICATION; GRANT CREATE ON DATABASE app TO app", sql=BANK,
        configuration={"cache": {"mode": "auto"}},
    ),
}
