import tempfile
import unittest
from pathlib import Path

from pondage_bench.cache_loads import Counted
from pondage_bench.cli import TINY, _checked, _chosen_loads
from pondage_bench.loads import PgbenchLoad
from pondage_bench.procedure_loads import ProcedureLoad, plausible
from pondage_bench.processes import BenchError
from pondage_bench.results import Results
from pondage_bench.rounds import startable
from pondage_bench.sides import Limit, Pondage, StatementByStatement
from pondage_bench.sides.base import Direct
from pondage_bench.sides.constant import Constant
from pondage_bench.tpcc.size import Size
from pondage_bench.workloads import WORKLOADS, Options
from pondage_bench.workloads.cache import VARIANTS as CACHES
from pondage_bench.workloads.cache import Cache
from pondage_bench.workloads.coalesce import VARIANTS, Coalesce
from pondage_bench.workloads.procedure import Procedure

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

    def test_a_constant_can_not_be_written(self) -> None:
        for key in ("writers@4", "writers-alone@4", "lag"):
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
        with self.assertRaisesRegex(BenchError, "no load nothing; there are point-select, "):
            _chosen_loads(loads, ["lag", "nothing"])


class Procedures(unittest.TestCase):
    def test_statement_by_statement_comes_first_and_then_the_same_sides_with_calls(self) -> None:
        with tempfile.NamedTemporaryFile() as binary:
            names = [side.name for side in Procedure().sides(Path(binary.name), [])]
        half = len(names) // 2
        self.assertEqual(names[:2], ["direct-statements", "pondage-statements"])
        self.assertEqual(names[:half], [f"{name}-statements" for name in names[half:]])
        self.assertFalse([name for name in names if "constant" in name or "tcp" in name])

    def test_the_side_says_whether_a_procedure_is_called(self) -> None:
        load = ProcedureLoad("payment", Size(10), 200, warm_up=5)
        self.assertEqual(load.info.key, "payment@10-200")
        self.assertEqual(load._profile_for(Direct()).script, "payment-call-10")
        by_statement = StatementByStatement(Direct())
        self.assertEqual(load._profile_for(by_statement).script, "payment-statements-10")
        self.assertIn("stores nothing", load.refusal(Constant()) or "")

    def test_what_is_missing_is_told_from_what_was_refused(self) -> None:
        for count, of, share, expected in (
            (0, 5000, 0.0, True), (1, 5000, 0.0, False), (-1, 5000, 0.0, False),
            (50, 5000, 0.01, True), (80, 5000, 0.01, True), (100, 5000, 0.01, False),
            (5, 5000, 0.01, False), (0, 100, 0.01, True), (-1, 100, 0.01, False),
        ):  # fmt: skip
            self.assertEqual(plausible(count, of, share), expected, (count, of, share))

    def test_loads_of_one_database_are_a_curve(self) -> None:
        curves = [load.info.curve for load in Procedure().loads(OPTIONS)]
        self.assertEqual(len(curves), 3 * 2 * 5)
        self.assertEqual(len(set(curves)), 3 * 2)
        self.assertIn("neworder, 60 warehouses", curves)

    def test_a_tiny_run_can_declare_keys(self) -> None:
        with tempfile.NamedTemporaryFile() as binary:
            given = ["procedure", "--tiny", "--declared", "--pondage", binary.name]
            run = _checked(given)
        self.assertTrue(run.options.declared)
        self.assertEqual(run.options.warehouses, TINY.warehouses)


class Old(Direct):
    name = "old"

    def unavailable(self) -> str | None:
        return "it is too old"


class Starting(unittest.TestCase):
    def test_a_side_that_can_not_start_is_left_out_with_a_note(self) -> None:
        results = Results("w", "t", {}, {}, {}, [])
        direct = Direct()
        self.assertEqual(startable([direct, Old()], results), [direct])
        self.assertEqual(results.notes, ["old takes no part: it is too old."])
