"""Tests of what bench/compare computes from measurements, and of how it treats workers that fail."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

SOURCE = Path(os.environ.get("TAUT_SOURCE_DIR", Path(__file__).parents[2]))
sys.path.insert(0, str(SOURCE / "bench"))
from comparison import environment, measure, report, statistics  # noqa: E402
from comparison.worker import Worker, WorkerError  # noqa: E402

ECHO = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "die":
        sys.exit(3)
    print(json.dumps({"error": "no"} if request["do"] == "fail" else {"seconds": 0.5, "losses": [1.0], "logits": [1.0]}), flush=True)
"""
COMMAND = [sys.executable, "-c", ECHO]


def sides(**times):
    return {name.replace("_", "-"): {"step": list(values)} for name, values in times.items()}


class Statistics(unittest.TestCase):
    def test_ratios_are_of_pairs(self):
        measured = sides(taut=(1, 2, 4), eager=(3, 4, 4))
        self.assertEqual(statistics.ratios(measured, "step", "eager"), [3, 2, 1])

    def test_what_is_missing_has_no_ratio(self):
        self.assertIsNone(statistics.ratios(sides(taut=(1,)), "step", "eager"))
        self.assertIsNone(statistics.ratios(sides(taut=(1,)), "step", None))
        self.assertIsNone(statistics.ratios(sides(eager=(1,)), "step", "eager"))

    def test_the_rung_to_beat_is_the_fastest_in_f32(self):
        measured = sides(taut=(1, 1, 1), eager=(5, 5, 5), fused=(4, 4, 9), bf16=(2, 2, 2))
        self.assertEqual(statistics.fastest_rung(measured, "step"), "fused")
        self.assertIsNone(statistics.fastest_rung(sides(taut=(1,), bf16=(2,)), "step"))

    def test_other_libraries_are_not_the_rung_to_beat(self):
        self.assertEqual(statistics.fastest_rung(sides(taut=(1,), eager=(5,), jax=(2,)), "step"), "eager")

    def test_the_best_of_ours_is_held_against_it(self):
        measured = {"taut": {"infer 1": [4, 4]}, "taut folded": {"infer 1": [2, 2]}, "eager": {"infer 1": [8, 6]}}
        self.assertEqual(statistics.best_ratios(measured, "infer 1"), [4, 3])
        self.assertIsNone(statistics.best_ratios({"taut": {"infer 1": [1]}}, "infer 1"))

    def test_precisions_are_held_against_their_own(self):
        measured = sides(taut=(4, 4), eager=(8, 8), bf16=(1, 1)) | {
            "taut tf32": {"step": [2, 2]},
            "tf32+fused": {"step": [6, 6]},
        }
        self.assertEqual(statistics.best_ratios(measured, "step"), [2, 2])
        self.assertEqual(statistics.best_ratios(measured, "step", "tf32"), [3, 3])
        self.assertIsNone(statistics.best_ratios(measured, "step", "bf16"))
        self.assertEqual(statistics.ratios(measured, "step", "tf32+fused"), [3, 3])
        self.assertEqual(statistics.ratios(measured, "step", "bf16"), [0.25, 0.25])

    def test_quartiles(self):
        self.assertEqual(statistics.quartiles([5, 1, 3, 2, 4]), [2, 3, 4])
        self.assertEqual(statistics.quartiles([7]), [7, 7, 7])


class Curves(unittest.TestCase):
    def test_says_where_losses_part(self):
        found = statistics.difference([1.0, 2.002, 3.3], [1.0, 2.0, 3.0])
        self.assertEqual(found["first"], 0)
        self.assertAlmostEqual(found["largest"], 0.1)
        self.assertEqual(found["step_apart"], 3)

    def test_nan_is_apart(self):
        self.assertEqual(statistics.difference([float("nan")], [1.0])["step_apart"], 1)


class Workers(unittest.TestCase):
    def test_answers_and_errors(self):
        with Worker("echo", COMMAND) as worker:
            self.assertEqual(worker.ask(do="steps")["seconds"], 0.5)
            with self.assertRaisesRegex(WorkerError, "echo: no"):
                worker.ask(do="fail")
            self.assertEqual(worker.ask(do="steps")["losses"], [1.0])
            with self.assertRaisesRegex(WorkerError, "status 3"):
                worker.ask(do="die")

    def test_a_side_that_failed_is_left_alone(self):
        side = measure.Side("echo", lambda: Worker("echo", COMMAND), {"do": "open"})
        self.assertEqual(side.first_step()[0], 1.0)
        self.assertIsNone(side.ask("test", do="die"))
        self.assertIn("status 3", side.result["error"])
        self.assertIsNone(side.ask("test", do="steps"))

    def test_a_round_measures_all_sides_that_work(self):
        good = measure.Side("good", lambda: Worker("good", COMMAND), {"do": "open"})
        bad = measure.Side("bad", lambda: Worker("bad", COMMAND), {"do": "open"})
        good.first_step(), bad.first_step()
        measure.in_turn(
            [good, bad], 3, "step", lambda side: side.worker.ask(do="fail" if side is bad else "steps")["seconds"]
        )
        good.close()
        self.assertEqual(good.result["step"], [0.5] * 3)
        self.assertNotIn("step", bad.result)


class Devices(unittest.TestCase):
    def sides_of(self, workload, device):
        options = SimpleNamespace(device=device, rungs=["eager", "tf32+channels-last+fused"])
        return measure.sides_of(COMMAND, sys.executable, workload, 1, options, Path("/exchange"), Path("/scratch"))

    def test_every_side_is_told_its_device(self):
        found = {side.name: side.open_request for side in self.sides_of("cifar-resnet18", "cuda")}
        self.assertEqual({request["device"] for request in found.values()}, {"cuda"})
        self.assertEqual(found["taut tf32"]["rung"], "tf32")
        self.assertEqual(found["taut bf16 folded"]["rung"], "bf16+folded")
        self.assertIn("tf32+channels-last+fused", found)

    def test_what_has_no_normalisation_is_not_folded(self):
        names = [side.name for side in self.sides_of("mnist-mlp", "cuda")]
        self.assertEqual(names, [*(f"taut{p}{g}" for g in ("", " graph") for p in ("", " tf32", " bf16")), "eager", "tf32+fused"])
        self.assertEqual(len(self.sides_of("cifar-resnet18", "cpu")), 4)

    def test_publishes_what_there_is_so_far(self):
        options = SimpleNamespace(device="cuda", rungs=[], pairs=2, starts=1, seconds=1.0, data=None, quick=True)
        published = []
        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
            result = measure.run(
                COMMAND, None, "mnist-mlp", 1, options, Path(scratch), lambda r: published.append(set(r["sides"]["taut"]))
            )
        self.assertEqual(published[0], {"start_up", "losses", "step", "memory"})
        self.assertEqual(published[1] - published[0], {"infer 1", "logits 1"})
        self.assertEqual(published[-1], set(result["sides"]["taut"]))
        self.assertEqual(result["sides"]["taut graph"]["step"], [0.5 / 4] * 2)  # two steps took half of the second

    def test_a_missing_peer_is_said(self):
        with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()) as said:
            bare = Path(directory) / "python"
            bare.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n")
            bare.chmod(0o755)
            for python in (str(bare), str(bare) + "-absent", "none"):
                self.assertIsNone(environment.find_pytorch(SimpleNamespace(python=python, device="cuda")))
        self.assertIn("columns stay empty: ModuleNotFoundError: No module named 'torch'", said.getvalue())
        self.assertIn("No such file", said.getvalue())


class Report(unittest.TestCase):
    def results(self):
        taut = {
            "step": [1.0, 1.0],
            "infer 1": [0.1, 0.1],
            "start_up": [0.2],
            "memory": {"peak": 2e6},
            "epoch": [{"seconds": 2.0, "samples": 100, "loss": 1.5}] * 2,
            "evaluation": [{"seconds": 1.0, "samples": 50}] * 2,
            "losses": [1.0, 2.1],
        }
        eager = {
            "step": [3.0, 2.5],
            "start_up": [2.0],
            "memory": {"peak": 8e6},
            "epoch": [{"seconds": 4.0, "samples": 100, "loss": 1.5}] * 2,
            "evaluation": [{"seconds": 5.0, "samples": 50}] * 2,
            "losses": [1.0, 2.0],
        }
        close = {"losses": [1.0, 2.001], "start_up": []}
        run = {
            "workload": "mnist-mlp",
            "threads": 2,
            "double": None,
            "profile": None,
            "pairs": 2,
            "date": "2000-01-01",
            "commit": "abc",
            "sides": {
                "taut": taut,
                "eager": eager,
                "close": close,
                "fused": {"start_up": [], "error": "fused: out of luck"},
            },
        }
        machine = {"processor": "Abacus", "cores": 2, "memory": 2**34, "system": "Linux", "taut": {"version": "1"}}
        return {"machine": machine, "runs": [run]}

    def test_writes_tables_with_empty_cells(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "abacus"
            report.write(self.results(), path)
            text = path.with_suffix(".md").read_text()
            self.assertEqual(report.read(path), self.results())
            self.assertIsNone(report.read(Path(directory) / "nothing"))
        self.assertIn(
            "| mnist-mlp | 2 | 2.75x [2.62, 2.88] |  |  | 2.00x [2.00, 2.00] | 3.00x [3.00, 3.00] | 0.25x |", text
        )
        self.assertIn("0.10x", text)
        self.assertIn("| taut | 100 | 50 | 50 | 1.5000 |", text)
        self.assertIn("from those of eager PyTorch for the first time at step 2: taut.", text)
        self.assertIn("Never in 2 steps: close.", text)
        self.assertIn("out of luck", text)
        self.assertIn("pytorch: not there", text)

    def test_a_gpu_has_a_row_for_each_precision(self):
        results = self.results()
        run = results["runs"][0]
        run["device"], results["machine"]["gpu"] = "cuda", "Loom"
        run["sides"] |= {"taut tf32": {"step": [0.5, 0.5]}, "tf32+fused": {"step": [2.0, 2.0]}}
        text = "\n".join(report.sections(results))
        self.assertIn("PyTorch on Loom\n", text)
        self.assertIn("Abacus, 2 cores", text)
        self.assertIn("| mnist-mlp | 2 | 2.75x", text)
        self.assertIn("| mnist-mlp, tf32 | 2 | 4.00x [4.00, 4.00] |", text)
        self.assertIn("## mnist-mlp on a GPU", text)


if __name__ == "__main__":
    unittest.main()
