#!/usr/bin/env python3
"""Clients, Pondage and PostgreSQL with a bad network between them: packets come late, in another
order, twice, or not at all, and for a while none comes. Nothing may be lost or told wrongly, and
nobody is told an error.

It takes root, network namespaces and /dev/net/tun; where those are not to be had it says so, and
ends with status 0.
"""

import argparse
import hashlib
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import stage
from drivers.base import Place, Suite, environment
from pondage_bench.pgwire import Client, Endpoint

CLIENTS = 20
TRANSACTIONS = 15
LARGE_BYTES = 3 << 18
ROWS = 20_000
CUT_SECONDS = 2.5
LOST_MIN = 10
# It never decides a test that succeeds.
PATIENCE_SECONDS = 120.0


class SlowNetwork(Suite):
    name = "slow-network"
    database = "slow"
    prepare = [
        "CREATE TABLE ledger (client int, number int, note text)",
        "CREATE TABLE copied (a int, b text)",
    ]

    def run(self, home: pathlib.Path, place: Place, short: bool) -> dict[str, str]:
        checks = [self.transactions, self.large_rows, self.copies, self.cancels, self.was_bad]
        found = {}
        for check in checks:
            began = time.monotonic()
            try:
                check(place)
                found[check.__name__] = "passed"
            except Exception as error:  # whatever it is, the others are of interest
                found[check.__name__] = f"failed: {type(error).__name__}: {error}"
            took = time.monotonic() - began
            print(f"  {check.__name__}: {found[check.__name__]}, {took:.1f} s", flush=True)
        return found

    @staticmethod
    def client(place: Place) -> Client:
        endpoint = Endpoint(place.host, place.port, place.user, place.database)
        return Client(endpoint, timeout=PATIENCE_SECONDS)

    def transactions(self, place: Place) -> None:
        """Of many clients; in their midst nothing arrives for a while."""
        wrong: list[str] = []
        done = threading.Semaphore(0)

        def work(client: int) -> None:
            try:
                with self.client(place) as connection:
                    connection.query(f"SET work_mem TO '{1000 + client}kB'")
                    for number in range(TRANSACTIONS):
                        self.transaction(connection, client, number)
                        done.release()
                    expect(connection.query("SHOW work_mem"), f"{1000 + client}kB")
            except Exception as error:
                wrong.append(f"client {client}: {type(error).__name__}: {error}")

        threads = [threading.Thread(target=work, args=[client]) for client in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for _ in range(CLIENTS * TRANSACTIONS // 3):
            if not done.acquire(timeout=PATIENCE_SECONDS):
                break
        place.hosts.cut()
        time.sleep(CUT_SECONDS)
        place.hosts.mend()
        for thread in threads:
            thread.join()
        if wrong:
            raise AssertionError("; ".join(wrong[:3]))
        direct = Endpoint("127.0.0.1", place.server_port, place.user, place.database)
        with Client(direct) as connection:
            expect(
                connection.query("SELECT count(*), count(DISTINCT (client, number)) FROM ledger"),
                str(CLIENTS * TRANSACTIONS), str(CLIENTS * TRANSACTIONS),
            )

    @staticmethod
    def transaction(connection: Client, client: int, number: int) -> None:
        note = f"{client}/{number}"
        connection.query("BEGIN")
        connection.query(f"INSERT INTO ledger VALUES ({client}, {number}, '{note}')")
        expect(
            connection.query(f"SELECT count(*), max(note) FILTER (WHERE number = {number})"
                             f" FROM ledger WHERE client = {client}"),
            str(number + 1), note,
        )
        connection.query("COMMIT")
        expect(connection.query(f"SELECT '{note}' || current_setting('work_mem')"),
               f"{note}{1000 + client}kB")

    def large_rows(self, place: Place) -> None:
        """Both ways, beside a client that asks for little."""
        text = "".join(hashlib.md5(str(n).encode()).hexdigest() for n in range(LARGE_BYTES // 32))
        with self.client(place) as large, self.client(place) as small:
            make = f"CREATE TABLE big AS SELECT '{text}' t"
            asked = threading.Thread(target=large.query, args=[make])
            asked.start()
            while asked.is_alive():
                expect(small.query("SELECT 7"), "7")
            asked.join()
            if [tuple(row) for row in large.query("SELECT t FROM big")] != [(text,)]:
                raise AssertionError("a large row came back as another")
            large.query("DROP TABLE big")

    def copies(self, place: Place) -> None:
        """Into a table and out of it, by psql."""
        lines = "".join(f"{n}\t{hashlib.md5(str(n).encode()).hexdigest()}\n" for n in range(ROWS))
        self.psql(place, "COPY copied FROM STDIN", lines)
        back = self.psql(place, "COPY (SELECT * FROM copied ORDER BY a) TO STDOUT")
        if back != lines:
            raise AssertionError("what was copied out is not what was copied in")

    def cancels(self, place: Place) -> None:
        """A statement that never ends, and a neighbour's that goes on."""
        with self.client(place) as neighbour:
            neighbour.query("BEGIN")
            expect(neighbour.query("SELECT 1"), "1")
            process = subprocess.Popen(
                self.command(place, "SELECT pg_sleep(3600) /* the one */"), text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(),
            )
            try:
                self.until_it_runs(place)
                process.send_signal(signal.SIGINT)
                said, _ = process.communicate(timeout=PATIENCE_SECONDS)
            finally:
                process.kill()
            if "canceling statement due to user request" not in said:
                raise AssertionError(f"who cancels is told {said!r}")
            expect(neighbour.query("SELECT 2"), "2")
            neighbour.query("COMMIT")

    def was_bad(self, place: Place) -> None:
        """What was lost was sent again: else all this proves nothing."""
        lines = [line.split() for line in pathlib.Path("/proc/net/snmp").read_text().splitlines()]
        names, values = (line for line in lines if line[0] == "Tcp:")
        again = int(dict(zip(names, values))["RetransSegs"])
        print(f"  {again} segments were sent again by this host", flush=True)
        if again < LOST_MIN:
            raise AssertionError("hardly a packet was lost")

    @staticmethod
    def until_it_runs(place: Place) -> None:
        direct = Endpoint("127.0.0.1", place.server_port, place.user, place.database)
        end = time.monotonic() + PATIENCE_SECONDS
        with Client(direct) as connection:
            while time.monotonic() < end:
                running = connection.query(
                    "SELECT 1 FROM pg_stat_activity WHERE state = 'active'"
                    " AND query LIKE '%the one%' AND pid <> pg_backend_pid()"
                )
                if running:
                    return
                time.sleep(0.05)
        raise AssertionError("it never ran")

    @staticmethod
    def command(place: Place, sql: str) -> list[str]:
        return [str(place.bindir / "psql"), "-X", "-h", place.host, "-p", str(place.port),
                "-U", place.user, "-d", place.database, "-v", "ON_ERROR_STOP=1", "-c", sql]

    def psql(self, place: Place, sql: str, given: str = "") -> str:
        ran = subprocess.run(
            self.command(place, sql), input=given, text=True, capture_output=True,
            timeout=PATIENCE_SECONDS, env=environment(), check=False,
        )
        if ran.returncode != 0:
            raise AssertionError(f"{sql}: {ran.stderr}")
        return ran.stdout


def expect(rows: list, *values: str) -> None:
    found = [tuple(row) for row in rows]
    if found != [values]:
        raise AssertionError(f"{found} instead of {[values]}")


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=stage.ROOT / "target/suites")
    arguments = parser.parse_args()
    if missing := stage.hosts.missing():
        print(f"slow network: SKIPPED: {missing}")
        return 0
    suite, failed = SlowNetwork(), 0
    for mode in (stage.TRANSACTION, stage.SESSION):
        kept = arguments.out.resolve() / "logs" / suite.name / mode
        kept.mkdir(parents=True, exist_ok=True)
        print(f"slow network, {mode} mode", flush=True)
        with tempfile.TemporaryDirectory(prefix="slow-") as directory:
            root = pathlib.Path(directory)
            root.chmod(0o755)
            with stage.place(suite, mode, kept, root / "run", kept, True) as place:
                results = suite.run(kept, place, False)
        failed += sum(outcome != "passed" for outcome in results.values())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
