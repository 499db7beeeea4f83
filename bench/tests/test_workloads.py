import json
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

from pondage_bench.cache_loads import Counted
from pondage_bench.cli import TINY, _checked, _chosen_loads
from pondage_bench.loads import Context, PgbenchLoad
from pondage_bench.pgbench import Amount
from pondage_bench.postgres import Cluster, Upstream
from pondage_bench.procedure_loads import SEED, TRAINED, TRIPS, ProcedureLoad, train_metrics
from pondage_bench.processes import BenchError, Supervisor
from pondage_bench.results import Results
from pondage_bench.rounds import startable
from pondage_bench.sides import Limit, Mirror, Pondage, Side, StatementByStatement, select
from pondage_bench.sides.base import Direct
from pondage_bench.sides.constant import Constant
from pondage_bench.tpcc.database import SQL
from pondage_bench.tpcc.size import Size
from pondage_bench.workloads import WORKLOADS, Options
from pondage_bench.workloads.cache import VARIANTS as CACHES
from pondage_bench.workloads.cache import Cache
from pondage_bench.workloads.coalesce import VARIANTS, Coalesce
from pondage_bench.workloads.procedure import TRAINS, Procedure

OPTIONS = Options(scales=(100,), clients=56, idle_clients=1, statements=1000)


def load_named(key: str) -> PgbenchLoad:
    (load,) = (load for load in Coalesce().loads(OPTIONS) if load.info.key == key)
    assert isinstance(load, PgbenchLoad)
    return load


class All(unittest.TestCase):
    def test_keys_of_loads_are_unique_in_every_size(self) -> None:
        for name, workload in WORKLOADS.items():
            for options in (OPTIONS, TINY):
                keys = [load.info.key for load in workload.loads(options)]
                with self.subTest(name):
                    self.assertEqual(len(keys), len(set(keys)))

    def test_without_pondage_every_workload_still_has_direct(self) -> None:
        for name, workload in WORKLOADS.items():
            names = [side.name for side in workload.sides(Path("/does/not/exist"), [])]
            with self.subTest(name):
                self.assertIn("direct", names)
                self.assertFalse([name for name in names if name.startswith("pondage")])


class Coalescing(unittest.TestCase):
    def test_variants_stand_beside_pondage_and_limits_at_the_end(self) -> None:
        with tempfile.NamedTemporaryFile() as binary:
            sides = Coalesce().sides(Path(binary.name), [])
        names = [side.name for side in sides]
        self.assertEqual(
            names[:5],
            ["direct", "pondage", "pondage-off", "pondage-pipeline", "pondage-trains"],
        )
        self.assertEqual(names[-3:], ["constant", "pondage-constant", "limit"])
        self.assertNotIn("pondage-tcp", names)

    def test_a_limit_is_what_postgresql_does_for_few_connections(self) -> None:
        command = load_named("select-simple@100").info.command
        self.assertIn("-S -M simple -c 56", command)
        self.assertIn("limit: pgbench -n -f deeply-pipelined.sql -s 100 -M prepared -c 2", command)
        self.assertIsNone(load_named("tpcb@100").refusal(Limit()))
        self.assertIn("faster", load_named("one-simple@100").refusal(Limit()) or "")

    def test_a_load_that_a_limit_pipelines_counts_statements(self) -> None:
        self.assertEqual(load_named("select-prepared@100").info.primary.label, "statements/s")
        self.assertEqual(load_named("tpcb@100").info.primary.label, "transactions/s")

    def test_trains_are_for_writes_only_and_constants_for_reads_only(self) -> None:
        (trains,) = (
            Pondage("pondage", Path("/x"), variant=v) for v in VARIANTS if v.suffix == "trains"
        )
        self.assertIn("under writes", load_named("tpcb@100").refusal(trains) or "")
        self.assertIsNone(load_named("writes@100").refusal(trains))
        self.assertIn("stores nothing", load_named("writes@100").refusal(Constant()) or "")


class Caching(unittest.TestCase):
    def setUp(self) -> None:
        self.loads = {load.info.key: load for load in Cache().loads(OPTIONS)}
        self.sides = {v.suffix: Pondage("pondage", Path("/x"), variant=v) for v in CACHES}

    def test_reads_come_in_every_combination_and_say_what_came_before(self) -> None:
        keys = [key for key in self.loads if key.startswith("point-select@")]
        self.assertEqual(len(keys), 3 * 2 * 2)
        command = self.loads["point-select@8-auto-uniform"].info.command
        self.assertIn("--db-ps-mode=auto --rand-type=uniform --threads=8", command)
        self.assertIn("caches are asked for every row", command)
        self.assertNotIn("every row", self.loads["read-only@1-disable-special"].info.command)

    def test_caches_with_little_room_are_for_what_is_about_that(self) -> None:
        small, bounded = self.sides["cache-1mib"], self.sides["cache-64mib"]
        self.assertIsNone(self.loads["misses-point-select@4-auto"].refusal(small))
        self.assertIsNone(self.loads["memory"].refusal(bounded))
        for side in (small, bounded):
            self.assertIsNotNone(self.loads["read-only@1-disable-special"].refusal(side))
        self.assertIsNotNone(self.loads["memory"].refusal(self.sides["cache"]))
        self.assertIsNone(self.loads["lag"].refusal(self.sides["cache"]))

    def test_mirrors_come_before_what_writes_and_beside_what_was_published(self) -> None:
        keys = list(self.loads)
        self.assertLess(keys.index("snapshot@rows"), keys.index("writers@4"))
        mirrored = [load.info for load in self.loads.values() if load.info.reported]
        self.assertEqual(len(mirrored), 4 * 3 * 2)
        self.assertTrue(all("--rand-type=uniform" in info.command for info in mirrored))
        self.assertTrue(self.sides["cache"].mirrors_tables)
        self.assertFalse(self.sides["cache-1mib"].mirrors_tables)

    def test_a_row_of_show_mirrors_is_a_mirror(self) -> None:
        row = ["app", "public.t", "id, k", "ready", "", "no", "3", "90", "k", "100.0"]
        self.assertEqual(Mirror.of(row), Mirror("public.t", "id, k", "ready", "", 3, 90))

    def test_a_constant_can_not_be_written(self) -> None:
        for key in ("writers@4", "writers-alone@4", "lag", "mirror-lag", "mirror-writers@4"):
            self.assertIsNotNone(self.loads[key].refusal(Constant()))
        self.assertIsNone(self.loads["random-ranges@1-disable-special"].refusal(Constant()))

    def test_hits_are_those_of_the_run(self) -> None:
        after, before = Counted({"hits": 110.0, "misses": 30.0}), Counted({"hits": 10.0})
        expected = {"hits": 100.0, "misses": 30.0, "hit_percent": 100.0 * 100 / 130}
        self.assertEqual(after.since(before), expected)
        self.assertEqual(after.since(after), {"hits": 0.0, "misses": 0.0})
        self.assertEqual(Counted({}).since(Counted({})), {})

    def test_loads_are_chosen_by_key_by_its_beginning_and_by_pattern(self) -> None:
        loads = list(self.loads.values())
        self.assertEqual(len(_chosen_loads(loads, ["read-only@*-auto-*", "lag"])), 3 * 2 + 1)
        self.assertEqual(len(_chosen_loads(loads, ["read-only"])), 3 * 2 * 2)
        self.assertEqual(_chosen_loads(loads, []), loads)
        with self.assertRaisesRegex(BenchError, "no load nothing; there are mirror-point-select, "):
            _chosen_loads(loads, ["lag", "nothing"])


class Procedures(unittest.TestCase):
    def sides(self) -> list[Side]:
        with tempfile.NamedTemporaryFile() as binary:
            return Procedure().sides(Path(binary.name), [])

    def test_the_five_columns_come_first(self) -> None:
        names = [side.name for side in self.sides()]
        self.assertEqual(
            names[:5],
            ["direct-statements", "pondage-statements", "direct", "pondage", "pondage-trains"],
        )
        self.assertEqual(len(names), len(set(names)))
        self.assertFalse([name for name in names if "constant" in name or "tcp" in name])

    def test_other_keys_are_measured_only_if_that_is_asked_for(self) -> None:
        sides = self.sides()
        usual = [side.name for side in select(sides, [])]
        self.assertIn("pondage-trains", usual)
        for name in ("pondage-trains-also", "pondage-trains-district", "pondage-lanes"):
            self.assertNotIn(name, usual)
            self.assertEqual([side.name for side in select(sides, [name])], [name])

    def test_only_trains_are_told_of_procedures(self) -> None:
        upstream = Upstream("127.0.0.1", 5544, Path("/run"), "postgres", "tpcc", pool_size=8)
        texts = {}
        with tempfile.TemporaryDirectory() as directory:
            for side in self.sides():
                if isinstance(side, Pondage):
                    texts[side.name] = side.prepare(Path(directory), 6432, upstream).configuration
        self.assertIn('procedures = "off"\n', texts["pondage"])
        self.assertNotIn("[procedures", texts["pondage"])
        self.assertIn('[procedures."public.payment"]\nkey = ["p_w"]\n', texts["pondage-trains"])
        self.assertIn('[procedures."public.neworder"]\nkey = ["p_w"]', texts["pondage-trains"])
        self.assertIn('also = ["p_cw"]', texts["pondage-trains-also"])
        self.assertIn('procedures = "auto"', texts["pondage-trains-auto"])
        for text in texts.values():
            self.assertIn("pool_size = 8\n", text)
            self.assertNotIn('http = "off"', text)

    def test_parameters_of_keys_are_those_of_the_procedures(self) -> None:
        text = (SQL / "procedures.sql").read_text()
        for variant in TRAINS:
            for name, options in variant.procedures.items():
                head = text[text.index(f" {name.removeprefix('public.')}(") :].partition("$$")[0]
                for value in (options.get("key", "[]"), options.get("also", "[]")):
                    for parameter in json.loads(value):
                        self.assertIn(f"{parameter} int", head)

    def test_the_side_says_whether_a_procedure_is_called(self) -> None:
        load = ProcedureLoad("payment", Size(10), 200, warm_up=5, pool_size=8)
        self.assertEqual(load.info.key, "payment@10-200")
        self.assertIn("stores nothing", load.refusal(Constant()) or "")
        tasks = []
        for side in (Direct(), StatementByStatement(Direct())):
            with tempfile.TemporaryDirectory() as directory:
                supervisor = Supervisor(Path(directory))
                upstream = Upstream("127.0.0.1", 5544, Path("/run"), "postgres", "tpcc_run")
                side.start(supervisor, upstream)
                context = Context(supervisor, Cluster(supervisor), Amount(10), False, round=2)
                tasks.append(load.task(context, side))
        called, by_statement = tasks
        self.assertEqual((called.way, by_statement.way), ("call", "statements"))
        self.assertEqual(replace(called, way="statements"), by_statement)
        self.assertEqual((called.warm_up, called.seconds, called.clients), (5, 10, 200))
        self.assertEqual(called.seed, SEED + 2)

    def test_loads_of_one_database_are_a_curve(self) -> None:
        curves = [load.info.curve for load in Procedure().loads(OPTIONS)]
        self.assertEqual(len(curves), 3 * 2 * 8)
        self.assertEqual(len(set(curves)), 3 * 2)
        self.assertIn("neworder, 60 warehouses", curves)

    def test_clients_are_a_list_for_procedures_and_one_number_for_the_others(self) -> None:
        with tempfile.NamedTemporaryFile() as binary:
            more = ["--pondage", binary.name]
            run = _checked(["procedure", "--clients", "1,50", "--pool-size", "4", *more])
            self.assertEqual((run.options.callers, run.options.pool_size), ((1, 50), 4))
            self.assertEqual(run.options.warm_up, Procedure.warm_up)
            self.assertEqual(_checked(["coalesce", "--clients", "7", *more]).options.clients, 7)
            self.assertEqual(_checked(["coalesce", *more]).options.clients, 56)
            with self.assertRaisesRegex(BenchError, "takes one number"):
                _checked(["coalesce", "--clients", "7,8", *more])

    def test_calls_a_train_are_told_of_those_that_make_any(self) -> None:
        self.assertEqual(train_metrics(Direct()), {})
        (trains,) = (side for side in self.sides() if side.name == "pondage-trains")
        assert isinstance(trains, Pondage)
        for figures, expected in (
            ({TRIPS: 10.0, TRAINED: 200.0}, {"train_length": 20.0}),
            ({TRIPS: 10.0, TRAINED: 0.0}, {}),
            ({}, {}),
        ):
            with mock.patch.object(trains, "figures", lambda told=figures: told):
                self.assertEqual(train_metrics(trains), expected)


class Old(Direct):
    name = "old"

    def unavailable(self) -> str | None:
        return "it is too old"


class Starting(unittest.TestCase):
    def test_a_side_that_can_not_start_is_left_out_with_a_note(self) -> None:
        results = Results("w", "t", {}, {}, {}, [])
        direct = Direct()
        self.assertEqual(startable([direct, Old()], [], results), [direct])
        self.assertEqual(results.notes, ["old takes no part: it is too old."])

    def test_a_side_that_was_asked_for_by_name_has_to_start(self) -> None:
        results = Results("w", "t", {}, {}, {}, [])
        with self.assertRaisesRegex(BenchError, "old can't take part: it is too old"):
            startable([Direct(), Old()], ["direct", "old"], results)
