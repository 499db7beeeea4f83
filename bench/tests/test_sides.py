import os
import tempfile
import tomllib
import unittest
from dataclasses import replace
from pathlib import Path

from pondage_bench.door import Certificate, Door
from pondage_bench.postgres import Upstream
from pondage_bench.processes import BenchError
from pondage_bench.sides import all_sides, parse_peers, select
from pondage_bench.sides.base import Gateway, Transport
from pondage_bench.sides.odyssey import Odyssey
from pondage_bench.sides.pgbouncer import PgBouncer
from pondage_bench.sides.pgcat import PgCat
from pondage_bench.sides.pgdog import PgDog
from pondage_bench.sides.pondage import Pondage, PondageOnConstant, Variant

UPSTREAM = Upstream("127.0.0.1", 5544, Path("/run/sockets"), "postgres", "scale10")


class Files(unittest.TestCase):
    """A temporary directory, and programs in it that tell a version."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)

    def program(self, name: str, version: str) -> Path:
        path = self.directory / name
        path.write_text(f"#!/bin/sh\necho '{version}'\n")
        path.chmod(0o755)
        return path

    def configuration(self, gateway: Gateway) -> str:
        return gateway.prepare(self.directory, 6000, UPSTREAM).configuration


class Doors(Files):
    def test_gateways_ask_for_what_the_door_says(self) -> None:
        certificate = Certificate(Path("/door.crt"), Path("/door.key"))
        upstream = replace(UPSTREAM, door=Door("secret", certificate))
        for gateway in (
            PgBouncer("pgbouncer", self.program("pgbouncer", "PgBouncer 1.25.2"), Transport.TCP),
            Pondage("pondage", self.program("pondage", "pondage 0.1.0")),
        ):
            with self.subTest(gateway.name):
                text = gateway.prepare(self.directory, 6000, upstream).configuration
                self.assertIn("/door.crt", text)
                self.assertNotIn("trust", text)
                self.assertNotIn("secret", text.replace("SCRAM-SHA-256$", ""))
                self.assertIn("trust", self.configuration(gateway))

    def test_a_program_of_libpq_is_told_what_to_bring(self) -> None:
        self.assertEqual(Door("x").conninfo("d"), "dbname=d password=x sslmode=disable")
        certificate = Certificate(Path("/door.crt"), Path("/door.key"))
        self.assertEqual(Door(None, certificate).conninfo("d"), "dbname=d sslmode=require")


class Peers(Files):
    def test_a_peer_is_known_by_the_beginning_of_its_name(self) -> None:
        binary = self.program("pooler", "PgBouncer 1.25.2")
        (peer,) = parse_peers(f" pgbouncer125={binary} ,")
        self.assertEqual((peer.name, peer.kind), ("pgbouncer125", PgBouncer))

    def test_else_by_the_name_of_its_file(self) -> None:
        binary = self.program("odyssey", "odyssey 1.5.1")
        (peer,) = parse_peers(f"other={binary}")
        self.assertEqual(peer.kind, Odyssey)

    def test_unknown_programs_and_missing_files_are_errors(self) -> None:
        binary = self.program("mystery", "1.0")
        wrong = (
            f"what={binary}",
            "pgcat=/does/not/exist",
            "pgcat",
            "=x",
            f"pgcat={self.directory}",
        )
        for text in wrong:
            with self.subTest(text), self.assertRaises(BenchError):
                parse_peers(text)


class Choosing(Files):
    def test_pondage_is_a_side_only_when_it_is_built(self) -> None:
        names = [side.name for side in all_sides(self.directory / "missing", [])]
        self.assertIn("direct", names)
        self.assertNotIn("pondage", names)
        binary = self.program("pondage", "pondage 0.1.0")
        names = [side.name for side in all_sides(binary, [])]
        self.assertEqual(names[:3], ["direct", "pondage", "pondage-tcp"])

    def test_a_peer_has_a_side_for_each_way_to_postgresql(self) -> None:
        peers = parse_peers(f"pgbouncer999={self.program('pgbouncer', 'PgBouncer 9.9.9')}")
        sides = all_sides(self.directory / "missing", peers)
        chosen = select(sides, ["pgbouncer999-unix", "pgbouncer999"])
        self.assertEqual(
            [side.description for side in chosen],
            ["pgbouncer, Unix socket to PostgreSQL", "pgbouncer, TCP to PostgreSQL"],
        )

    def test_a_side_that_is_not_here_is_an_error_that_names_those_that_are(self) -> None:
        with self.assertRaisesRegex(BenchError, "no side nowhere.*direct"):
            select(all_sides(self.directory / "missing", []), ["direct", "nowhere"])


class Configurations(Files):
    def test_pondage_reaches_postgresql_through_the_socket_by_default(self) -> None:
        binary = self.program("pondage", "pondage 0.1.0")
        text = self.configuration(Pondage("pondage", binary, Transport.UNIX))
        read = tomllib.loads(text)
        self.assertEqual(read["listen"]["postgres"], ["127.0.0.1:6000"])
        database = read["databases"]["scale10"]
        self.assertEqual((database["host"], database["port"]), ("/run/sockets", 5544))
        self.assertEqual((database["pool_size"], database["mode"]), (20, "transaction"))
        self.assertNotIn("pool", read)

    def test_a_variant_of_pondage_differs_by_its_options_alone(self) -> None:
        binary = self.program("pondage", "pondage 0.1.0")
        plain = tomllib.loads(self.configuration(Pondage("pondage", binary)))
        options = {"coalesce": '"off"', "coalesce_writes": "true"}
        variant = Pondage("pondage", binary, variant=Variant("off", options))
        read = tomllib.loads(self.configuration(variant))
        self.assertEqual(read.pop("pool"), {"coalesce": "off", "coalesce_writes": True})
        self.assertEqual(read, plain)
        self.assertEqual(variant.name, "pondage-off")
        self.assertIn('coalesce = "off"', variant.description)

    def test_a_cache_is_a_section_and_tells_its_figures(self) -> None:
        binary = self.program("pondage", "pondage 0.1.0")
        options = {"mode": '"auto"', "memory": '"1MiB"'}
        side = Pondage("pondage", binary, variant=Variant("cache", cache=options))
        read = tomllib.loads(self.configuration(side))
        self.assertEqual(read["cache"], {"mode": "auto", "memory": "1MiB"})
        self.assertRegex(read["listen"]["http"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual(read["auth"]["admin_users"], ["postgres"])
        self.assertTrue(side.caches)
        plain = Pondage("pondage", binary)
        self.assertEqual(tomllib.loads(self.configuration(plain))["listen"]["http"], "off")
        with self.assertRaises(BenchError):
            plain.figures()

    def test_pgbouncer_gets_prepared_statements_from_1_21_on(self) -> None:
        old = PgBouncer("old", self.program("old", "PgBouncer 1.18.0"), Transport.TCP)
        new = PgBouncer("new", self.program("new", "PgBouncer 1.21.0"), Transport.UNIX)
        self.assertIn("1.18.0", old.refuses_prepared() or "")
        self.assertNotIn("max_prepared_statements", self.configuration(old))
        self.assertIsNone(new.refuses_prepared())
        self.assertIn("max_prepared_statements = 200", self.configuration(new))
        self.assertIn("host=/run/sockets port=5544", self.configuration(new))

    def test_odyssey_has_no_host_where_it_uses_the_socket(self) -> None:
        binary = self.program("odyssey", "odyssey 1.5.1")
        unix = self.configuration(Odyssey("odyssey", binary, Transport.UNIX))
        tcp = self.configuration(Odyssey("odyssey", binary, Transport.TCP))
        self.assertIn('unix_socket_dir "/run/sockets"', unix)
        self.assertEqual(unix.count('host "127.0.0.1"'), 1)  # only where it listens
        self.assertEqual(tcp.count('host "127.0.0.1"'), 2)

    def test_every_gateway_has_the_same_pool(self) -> None:
        binary = self.program("pooler", "pooler 9.9.9")
        for kind in (Pondage, PgBouncer, Odyssey, PgCat, PgDog):
            with self.subTest(kind.kind):
                text = self.configuration(kind(kind.kind, binary, Transport.TCP))
                self.assertRegex(text, r"pool_size[ =]+20\b")
                self.assertIn("transaction", text)

    def test_toml_rivals_get_toml(self) -> None:
        binary = self.program("pooler", "pooler 9.9.9")
        pgcat = tomllib.loads(self.configuration(PgCat("pgcat", binary, Transport.TCP)))
        self.assertEqual(pgcat["pools"]["scale10"]["users"]["0"]["pool_size"], 20)
        self.configuration(PgDog("pgdog", binary, Transport.TCP))
        pgdog = tomllib.loads((self.directory / "pgdog.toml").read_text())
        self.assertEqual(pgdog["databases"][0]["port"], 5544)
        users = tomllib.loads((self.directory / "users.toml").read_text())
        self.assertEqual(users["users"][0]["name"], "postgres")


class Unavailable(Files):
    """Builds that know less than the variants ask for."""

    def build(self, script: str) -> Path:
        path = self.directory / "build"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def test_a_variant_whose_option_is_refused_takes_no_part_and_says_which(self) -> None:
        binary = self.build('echo "error: unknown key coalesce" >&2; exit 78')
        variant = Pondage("pondage", binary, variant=Variant("off", {"coalesce": '"off"'}))
        self.assertIn("unknown key coalesce", variant.unavailable() or "")

    def test_it_is_asked_with_the_option_in_its_configuration(self) -> None:
        binary = self.build("[ $1 = check ] && grep -q '^coalesce = \"off\"$' $3")
        known = Pondage("pondage", binary, variant=Variant("off", {"coalesce": '"off"'}))
        self.assertIsNone(known.unavailable())

    def test_pondage_as_it_comes_is_not_asked(self) -> None:
        self.assertIsNone(Pondage("pondage", self.build("exit 1")).unavailable())


class OnConstant(Files):
    def test_it_is_a_limit_that_stores_nothing(self) -> None:
        side = PondageOnConstant("pondage", self.program("pondage", "pondage 0.1.0"))
        self.assertEqual((side.name, side.kind), ("pondage-constant", "constant"))
        self.assertFalse(side.stores)
        self.assertIsNone(side.database_pid)


class Versions(Files):
    def test_numbers_are_read_out_of_a_version(self) -> None:
        side = PgBouncer("p", self.program("p", "PgBouncer 1.25.2"), Transport.TCP)
        self.assertEqual(side.version_number(), (1, 25, 2))

    def test_a_program_that_tells_nothing_has_no_number(self) -> None:
        side = Pondage("p", self.program("p", ""), Transport.TCP)
        self.assertEqual(side.version_number(), ())

    def test_a_program_that_can_not_run_is_an_error(self) -> None:
        broken = self.directory / "broken"
        broken.write_bytes(os.urandom(64))
        with self.assertRaises(BenchError):
            Pondage("p", broken, Transport.TCP).version()
