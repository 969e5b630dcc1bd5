"""Tests of scripts/measuring: python3 tests/scripts/measuring_test.py"""

import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))

from measuring import accelerator, bench, machine, measurements, results, sensitivities, tables  # noqa: E402, F401


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

    def test_the_caption_says_how_fast_memory_was_in_the_runs(self):
        runs = [{"output": {"read_bandwidth_gbs": speed}} for speed in (70, 50, 60)]
        self.put("one", "One", [{"reading": "bf16", "rows": 1, "fraction": 0.9}], runs=[*runs, {"output": [1, 2]}, {"output": {"cpu": "x"}}])
        self.put("two", "Two", [{"reading": "bf16", "rows": 1, "fraction": 0.9}], runs=[{"command": "bench"}])
        captions = " ".join(tables.render("kernels", "../", set()))
        self.assertIn("One: 2026-11-23, version `abc`, memory read at 60 GB/s", captions)
        self.assertIn("Two: 2026-11-23, version `abc`, memory read at 30 GB/s", captions)

    def test_a_measurement_is_captioned_once_on_a_page(self):
        self.put("one", "One", [{"reading": "bf16", "rows": 1, "fraction": 0.9}])
        captioned = set()
        first = tables.render("kernels", "", captioned)
        self.assertEqual(tables.render("kernels", "", captioned), first[:4])

    def test_a_table_without_results_says_how_to_measure(self):
        self.assertIn("scripts/measure kernels", tables.render("kernels", "", set())[0])


class SensitivityTables(unittest.TestCase):
    def record(self, of, text, excess, divergence):
        return {"reading": "squeeze3", "split": "0 %", "of": of, "text": text, "excess": excess, "divergence": divergence}

    def test_what_they_close_is_a_share_of_the_distance_that_there_is_without(self):
        records = [self.record("none", "python_heldout", 0.04, 0.05), self.record("wikitext2", "python_heldout", 0.05, 0.05),
                   self.record("python", "python_heldout", 0.03, 0.04)]
        closed, = tables.closed(records)
        self.assertAlmostEqual(closed["excess_closed"], 0.25)
        self.assertAlmostEqual(closed["divergence_closed"], 0.2)

    def test_of_no_distance_nothing_is_closed(self):
        closed, = tables.closed([self.record("none", "python_heldout", -0.04, 0.05), self.record("python", "python_heldout", 0.03, 0.04)])
        self.assertNotIn("excess_closed", closed)

    def test_those_of_a_text_of_its_own_kind_are_one_row_for_all_texts(self):
        records = [self.record(of, text, 0.1, 0.1) for text in ("wikitext2_test", "python_heldout") for of in ("none", "wikitext2", "python")]
        self.assertEqual([of["of"] for of in tables.of_own_kind(records)], ["none", "its own kind"] * 2)


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

    def test_what_the_program_prints_of_the_paper_is_read_line_by_line(self):
        m = bench.Bench("speq-claims", unittest.mock.Mock(quick=False, repeats=1), "")
        accelerator.claims_of(m, [
            "Tables II and III", "  model        task            L      r   paper  simulated deviation  Td/Tar  Tv/Tar  fitted",
            "  llama2-7b    MT-bench     4.47  0.986    2.04       2.29   +12.3 %   0.291   1.006    2.04",
            "Figures 7 and 8, means", "  olive-8      1.53       1.24    -18.7 %           1.35             1.25         1.32",
            "  olive-4         -       0.66          -              -             0.66         0.70",
            "Times of passes of x by mapping and bandwidth: Td/Tar, Tv/Tar of 7 rows", "  groups within a PE, tiles share rows",
            "      153.6 GB/s   0.391   1.028", "  nearest to (0.357, 1), where table III lies: x", "Sensitivity, x",
            "  changed                               speedup   Td/Tar   Tv/Tar",
            "  SFU of 8 lanes                          2.254    0.289    1.008"])
        self.assertEqual(m.values(), [
            {"model": "llama2-7b", "task": "MT-bench", "length": 4.47, "acceptance": 0.986, "paper": 2.04, "simulated": 2.29, "deviation": 0.123,
             "draft_time": 0.291, "verify_time": 1.006, "fitted": 2.04},
            {"over": "olive-8", "paper": 1.53, "simulated": 1.24, "energy_paper": 1.35, "energy_memory": 1.25, "energy_chip": 1.32,
             "deviation": -0.187},
            {"over": "olive-4", "simulated": 0.66, "energy_memory": 0.66, "energy_chip": 0.7},
            {"mapping": "groups within a PE, tiles share rows", "bandwidth": 153.6, "draft_time": 0.391, "verify_time": 1.028},
            {"changed": "SFU of 8 lanes", "speedup": 2.254, "draft_time": 0.289, "verify_time": 1.008}])


class Sensitivities(unittest.TestCase):
    def test_a_file_kept_is_of_the_same_trainer_model_text_and_options(self):
        with tempfile.TemporaryDirectory() as folder:
            model, text = pathlib.Path(folder) / "model", pathlib.Path(folder) / "text"
            model.mkdir()
            (model / "weights").write_bytes(b"1")
            text.write_bytes(b"once")
            names = [sensitivities.digest_of([model, text], "10")]
            self.assertEqual(sensitivities.digest_of([model, text], "10"), names[0])
            names.append(sensitivities.digest_of([model, text], "20"))
            (model / "weights").write_bytes(b"2")
            names.append(sensitivities.digest_of([model, text], "10"))
            text.write_bytes(b"twice")
            names.append(sensitivities.digest_of([model, text], "10"))
            self.assertEqual(len(set(names)), 4)


class StoredBits(unittest.TestCase):
    def test_count_codes_tables_and_the_sparse_part_of_all_matrices(self):
        with tempfile.TemporaryDirectory() as folder:
            header = json.dumps({"__metadata__": {}, "norm": {"shape": [64]}, "one": {"shape": [10, 64]}, "two": {"shape": [20, 128]}}).encode()
            (pathlib.Path(folder) / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
            weights, columns = 10 * 64 + 20 * 128, 30
            self.assertAlmostEqual(sensitivities.stored_bits(folder, 3, 0), 3 + columns * (16 * 8 + 32) / weights)
            self.assertAlmostEqual(sensitivities.stored_bits(folder, 2, 0.01, uniform=True), 2 + 0.32 + columns * (32 + 32) / weights)
            self.assertAlmostEqual(sensitivities.stored_bits(folder, 3, 0, group=100), 3 + (10 + 40) * 128 / weights + columns * 32 / weights)


if __name__ == "__main__":
    unittest.main()
