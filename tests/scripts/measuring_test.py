"""Tests of scripts/measuring: python3 tests/scripts/measuring_test.py"""

import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))

from measuring import bench, machine, measurements, results, sensitivities, tables  # noqa: E402, F401


def result(title, values, **more):
    return {"measurement": "kernels", "machine": {"read_bandwidth_gbs": 30}, "title": title, "date": "2026-11-23", "version": "abc",
            "quick": False, "transcribed": False, "conditions": "A matrix.", "values": values, "runs": [], **more}


class Results(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        patch = unittest.mock.patch.object(results, "RESULTS", pathlib.Path(folder.name))
        patch.start()
        self.addCleanup(patch.stop)

    def put(self, name, title, values, **more):
        results.write(results.path_of(name, "kernels"), result(title, values, **more))

    def test_a_result_is_read_as_it_was_written(self):
        self.put("one", "One", [{"reading": "bf16", "rows": 1, "fraction": 0.9}])
        self.assertEqual(results.load("one", "kernels"), result("One", [{"reading": "bf16", "rows": 1, "fraction": 0.9}]))

    def test_a_second_machine_is_a_second_column(self):
        self.put("one", "One", [{"reading": "bf16", "rows": 1, "fraction": 0.9}])
        self.put("two", "Two", [{"reading": "bf16", "rows": 1, "fraction": 0.8}, {"reading": "int8", "rows": 1, "fraction": 0.7}])
        lines = tables.render("kernels", "", set())
        self.assertEqual(lines[:5], ["| reading | One | Two |", "|---|--:|--:|", "|  | 1 row | 1 row |", "| `bf16` | 0.90 | 0.80 |",
                                     "| `int8` |  | 0.70 |"])

    def test_the_caption_says_when_a_number_is_transcribed_or_quick(self):
        self.put("one", "One", [{"reading": "bf16", "rows": 1, "fraction": 0.9}], transcribed=True)
        self.put("two", "Two", [{"reading": "bf16", "rows": 1, "fraction": 0.9}], quick=True)
        text = " ".join(tables.render("kernels", "../", set()))
        self.assertIn("transcribed", text)
        self.assertIn("a quick measurement", text)
        self.assertIn("](../results/two/kernels.json)", text)

    def test_a_measurement_is_captioned_once_on_a_page(self):
        self.put("one", "One", [{"reading": "bf16", "rows": 1, "fraction": 0.9}])
        captioned = set()
        first = tables.render("kernels", "", captioned)
        self.assertEqual(tables.render("kernels", "", captioned), first[:4])

    def test_a_table_without_results_says_how_to_measure(self):
        self.assertIn("scripts/measure kernels", tables.render("kernels", "", set())[0])


class Numbers(unittest.TestCase):
    def test_several_runs_become_a_median_with_its_extent(self):
        self.assertEqual(results.summary([3, 1, 2]), {"median": 2, "low": 1, "high": 3, "runs": 3})
        self.assertEqual(results.summary([3]), 3)
        self.assertEqual(results.spread(results.summary([2, 1, 2.5])), 0.5)
        self.assertIsNone(results.spread(3))

    def test_every_table_shows_a_measurement_that_there_is(self):
        for name, table in tables.TABLES.items():
            self.assertIn(table.measurement, measurements.MEASUREMENTS, name)

    def test_machines_have_short_names(self):
        xeon = {"cpu": "Intel(R) Xeon(R) Platinum 8488C CPU @ 2.4GHz", "isa": "amx (int8, bf16)", "threads": 2}
        self.assertEqual(machine.title(xeon), "Xeon Platinum 8488C, AMX, 2 threads")
        self.assertEqual(machine.folder(xeon), "xeon-platinum-8488c-amx-2-threads")
        epyc = {"cpu": "AMD EPYC 9R14 96-Core Processor", "isa": "avx512 (vnni, bf16)", "threads": 1}
        self.assertEqual(machine.folder(epyc), "epyc-9r14-avx512-1-thread")

    def test_kinds_of_prompts_have_the_names_of_the_tables(self):
        self.assertEqual([bench.kind_of(kind) for kind in ("code", "sum", "sums", "dialogue", "question", "scripts")],
                         ["code", "sums", "sums", "dialogue", "questions", "scripts"])


if __name__ == "__main__":
    unittest.main()
