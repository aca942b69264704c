"""The registry is valid, and rivals does what it says: schemas, intervals, turns, equality, tables, plots, the
regression check. No engine is needed: harness_for_tests.py stands in for some."""

import base64
import copy
import hashlib
import json
import pathlib
import sys
import tempfile
import unittest
import zipfile
from types import SimpleNamespace
from unittest import mock
from xml.dom import minidom

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "harness")]
import onnx_model  # noqa: E402
from comparison import (cli, estimates, gguf, install, outputs, plots, process, prompts, records,  # noqa: E402
                        registry, report, runner, schema, squeeze)

WORKLOADS = [{"name": "8x4", "prompt": 8, "decode": 4, "streams": 1}, {"name": "16x4", "prompt": 16, "decode": 4, "streams": 1},
             {"name": "8x4x2", "prompt": 8, "decode": 4, "streams": 2}]


def engine(name, words=(), streams=2):
    return {"name": name, "title": name, "version": "1", "fairness": ["none"], "profiles": {"parity": {"kv": "f16"}},
            "harness": {"command": [sys.executable, str(HERE / "harness_for_tests.py"), *words], "max_streams": streams}}


def measured(folder, engines, workloads=WORKLOADS, **more):
    model = folder / "tiny.gguf"
    model.write_bytes(b"GGUF")
    for one in engines:
        (folder / one["name"]).mkdir(exist_ok=True)
    plan = runner.Plan(engines=engines, workloads=workloads, model=model, folder=folder, rounds=3, command="rivals run", **more)
    return runner.Runner(plan, lambda words: None).run()


class Registry(unittest.TestCase):
    def test_is_valid(self):
        self.assertEqual(registry.every_fault(), [])

    def test_sets_and_names(self):
        self.assertEqual([workload["name"] for workload in registry.chosen_workloads(["small", "64x64"])], ["64x64", "256x64"])
        with self.assertRaisesRegex(registry.Unknown, "allowed are"):
            registry.chosen_workloads(["1x1"])

    def test_gap_goes_one_way(self):
        engines = registry.engines()
        base, target = engines["doppler-native"], engines["llama.cpp-cpu"]
        self.assertIn("lora", [row[0] for row in registry.gap(base, target)])
        self.assertIn("webgpu", [row[0] for row in registry.gap(target, base)])

    def test_options_name_engines_with_dots(self):
        self.assertEqual(cli.settings_of(["llama.cpp-cpu.threads=2"], "."), {"llama.cpp-cpu": {"threads": "2"}})

    def test_commands_leave_out_folders(self):
        words = ["run", "--folder", "/x", "--model", "/y/z.gguf", "--save", "/s", "--label", "a b"]
        self.assertEqual(cli.spelled(words), "tools/rivals/rivals run --model z.gguf --label 'a b'")


    def test_graphs_that_engines_ask_for_can_be_made(self):
        for name, provider in (("onnxruntime-genai-cpu", "cpu"), ("onnxruntime-genai-webgpu", "webgpu"), ("transformers.js", "cpu")):
            engine = registry.engines()[name]
            asked = {options["graph"] for options in (engine["harness"]["options"], *engine["profiles"].values()) if "graph" in options}
            self.assertEqual({onnx_model.GRAPHS[graph][1] for graph in asked}, {provider})


class OnnxModel(unittest.TestCase):
    def test_a_repeated_layer_reads_the_one_before_it(self):
        def node(name, *inputs):
            return SimpleNamespace(op_type="Add", name=name, input=[f"{one}/output_0" for one in inputs], output=[f"{name}/output_0"])
        nodes = [node("/model/embed"), node("/model/layers.0/a", "/model/embed"), node("/model/layers.1/a", "/model/layers.0/a"),
                 node("/model/layers.1/b", "/model/layers.1/a"), node("/model/layers.2/a", "/model/layers.1/b"),
                 node("/model/layers.3/final_norm", "/model/layers.2/a"), node("/lm_head", "/model/layers.3/final_norm")]
        made = onnx_model.with_layers(nodes, 3, 4)
        self.assertEqual([one.name for one in made], ["/model/embed", *(f"/model/layers.{name}" for name in (
            "0/a", "1/a", "1/b", "2/a", "2/b", "3/a", "4/final_norm")), "/lm_head"])
        reads = {one.name: one.input[0] for one in made[1:]}
        self.assertEqual(reads["/model/layers.2/a"], "/model/layers.1/a/output_0")
        self.assertEqual(reads["/model/layers.3/a"], "/model/layers.2/b/output_0")
        self.assertEqual(reads["/lm_head"], "/model/layers.4/final_norm/output_0")


class Install(unittest.TestCase):
    def test_wheels_are_pinned_as_npm_packages_are(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            wheel = folder / "some_engine-1.2.3-py3-none-any.whl"
            with zipfile.ZipFile(wheel, "w") as archive:
                archive.writestr("some_engine/libsome.so", "library")
            digest = base64.b64encode(hashlib.sha512(wheel.read_bytes()).digest()).decode()
            package = {"manager": "pip", "name": "some-engine", "version": "1.2.3", "integrity": f"sha512-{digest}"}
            with mock.patch.object(install, "run") as run:  # pip would have fetched the wheel
                self.assertEqual((install.unpacked(package, folder) / "some_engine/libsome.so").read_text(), "library")
                self.assertIn("some-engine==1.2.3", run.call_args.args)
                with self.assertRaisesRegex(install.Impossible, "the registry pins sha512-other"):
                    install.unpacked({**package, "integrity": "sha512-other"}, folder)


class Schema(unittest.TestCase):
    def test_faults_say_where_and_what(self):
        shape = {"type": "object", "required": ["a"], "additionalProperties": False,
                 "properties": {"a": {"type": "array", "items": {"type": "integer", "minimum": 1}}}}
        self.assertEqual(schema.faults({"a": [1, 2]}, shape), [])
        self.assertEqual(schema.faults({"a": [0]}, shape), ["$.a[0] is 0; it must be at least 1."])
        self.assertEqual(schema.faults({"a": [True]}, shape), ["$.a[0] is true; it must be of type integer."])
        self.assertEqual(len(schema.faults({"b": 1}, shape)), 2)

    def test_unknown_keywords_are_faults(self):
        self.assertIn("oneOf", schema.faults(1, {"oneOf": []})[0])

    def test_committed_schemas_use_known_keywords(self):
        def walk(shape):
            self.assertLessEqual(set(shape), schema.KEYWORDS)
            inner = [shape.get("items", {}), shape.get("additionalProperties", {})]
            for member in [*shape.get("properties", {}).values(), *inner]:
                if isinstance(member, dict) and member:
                    walk(member)
        for path in schema.FOLDER.glob("*.json"):
            walk(schema.load(path.stem))


class Estimates(unittest.TestCase):
    def test_interval_holds_the_median(self):
        figure = estimates.estimate([10.0, 11.0, 12.0, 13.0, 30.0])
        self.assertEqual(figure["median"], 12.0)
        self.assertTrue(10.0 <= figure["low"] <= 12.0 <= figure["high"] <= 30.0)
        self.assertEqual(figure, estimates.estimate([10.0, 11.0, 12.0, 13.0, 30.0]))

    def test_equal_samples_have_no_spread(self):
        self.assertEqual(estimates.spread(estimates.estimate([2.0] * 5)), 0.0)
        self.assertEqual(estimates.interval_of_median([3.0]), (3.0, 3.0))

    def test_wider_samples_spread_more(self):
        narrow, wide = estimates.estimate([99.0, 100.0, 101.0]), estimates.estimate([50.0, 100.0, 150.0])
        self.assertLess(estimates.spread(narrow), estimates.spread(wide))


class Prompts(unittest.TestCase):
    def test_prompts_do_not_repeat(self):
        made = [tuple(prompt.tokens) for workload in WORKLOADS[::2] for turn in (-1, 0, 1)
                for prompt in prompts.prompts(workload, turn, 8192, None)]
        self.assertEqual(len(set(made)), len(made))
        self.assertEqual(prompts.prompts(WORKLOADS[0], 1, 8192, None), prompts.prompts(WORKLOADS[0], 1, 8192, None))
        self.assertTrue(all(1024 <= token < 8064 for prompt in made for token in prompt))

    def test_words_of_the_shipped_model(self):
        vocabulary = gguf.vocabulary(HERE.parents[1] / "models" / "storyteller.gguf")
        self.assertIn((265, "the"), vocabulary.words)
        made = prompts.prompts(WORKLOADS[0], 0, 8192, vocabulary)[0]
        self.assertEqual((len(made.tokens), made.tokens[0]), (8, vocabulary.bos))
        words = dict(vocabulary.words)
        self.assertEqual(made.text, "".join(" " + words[token] for token in made.tokens[1:]))


class Outputs(unittest.TestCase):
    def test_by_tokens_or_by_text(self):
        tokens, text = [{"tokens": [1, 2, 3], "text": "abc"}], [{"tokens": [], "text": "abd"}]
        self.assertEqual(outputs.compare("a", {0: tokens}, {0: tokens})["same"], 1)
        differs = outputs.compare("a", {0: tokens}, {0: text})
        self.assertEqual((differs["compared"], differs["same"], differs["first_difference"]), ("text", 0, 2))
        self.assertEqual(outputs.compare("a", {}, {})["compared"], "nothing")


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.record = measured(cls.folder, [engine("steady"), engine("other", ["--differ", "--speed", "2"], streams=1),
                                           engine("broken", ["--fail"])])

    def result(self, name, workload):
        return next(result for result in self.record["results"] if (result["engine"], result["workload"]) == (name, workload))

    def test_record_is_valid_and_turns_are_counted(self):
        schema.check(self.record, "record", "record")
        figures = self.result("steady", "8x4")["figures"]
        self.assertEqual(len(figures["decode_tok_s"]["samples"]), 3)
        self.assertAlmostEqual(figures["decode_tok_s"]["median"], 100.0)  # 3 intervals in 0.03 s
        self.assertAlmostEqual(figures["prefill_tok_s"]["median"], 800.0)
        self.assertAlmostEqual(self.result("steady", "8x4x2")["figures"]["decode_tok_s"]["median"], 200.0)

    def test_settings_of_all_workloads_are_kept(self):
        settings = self.record["engines"][0]["settings"]
        self.assertEqual(settings["graph"], "int4, of a file")
        contexts = [str(runner.context_of(workload)) for workload in WORKLOADS]
        self.assertEqual(settings["context"], ", ".join(dict.fromkeys(contexts)))

    def test_differing_output_is_said(self):
        self.assertEqual(self.result("steady", "8x4")["output"]["base"], "steady")
        self.assertEqual(self.result("other", "8x4")["output"]["first_difference"], 3)
        self.assertIn("**differs** in 3 of 3, first at 3", "\n".join(report.table(self.record)))

    def test_failures_keep_their_reasons(self):
        reasons = {(failure["engine"], failure["workload"]): failure["reason"] for failure in self.record["failures"]}
        self.assertEqual(reasons["broken", "8x4"], "It cannot read this.")
        self.assertIn("at most 1 streams", reasons["other", "8x4x2"])

    def test_page_and_plots(self):
        page = report.markdown([self.record], ["decode.svg"])
        self.assertIn("| 8x4 | other | 1600 (1600 to 1600)", page)
        self.assertIn("2.00x", page)
        self.assertIn("broken did not run 8x4: It cannot read this.", page)
        self.assertNotIn(str(self.folder), page)
        made = plots.of_records([self.record])
        self.assertEqual(sorted(made), [f"{kind}.tiny.compute.parity.svg" for kind in ("decode", "prefill", "streams")])
        for text in made.values():
            minidom.parseString(text)

    def test_loads(self):
        for mode in ("cold", "warm"):
            record = measured(self.folder, [engine("steady")], WORKLOADS[:1], mode=mode)
            schema.check(record, "record", "record")
            self.assertGreater(record["results"][0]["figures"]["start_to_token_s"]["median"], 0.0)
            minidom.parseString(plots.of_records([record])[f"load.tiny.{mode}.parity.svg"])

    def test_fewer_rounds_and_one_process_for_all_workloads(self):
        kept = [engine("again"), engine("once", ["--once"])]
        for one in kept:
            one["harness"]["loads_again"] = True
        record = measured(self.folder, [*kept, engine("anew", ["--once"])], WORKLOADS[:2], together=True, warmup_tokens=2,
                          rounds_of={"anew": {"16x4": "1"}})
        schema.check(record, "record", "record")
        figures = {(result["engine"], result["workload"]): result["figures"] for result in record["results"]}
        self.assertEqual([len(figures[name, "16x4"]["decode_tok_s"]["samples"]) for name in ("again", "anew")], [3, 1])
        self.assertEqual(record["failures"], [{"engine": "once", "workload": "16x4", "reason": "It was loaded before."}])
        self.assertIn("3 rounds by turns (fewer of anew 16x4: 1)", report.markdown([record], []))

    def test_records_are_saved_once_and_found_again(self):
        folder = self.folder / "saved"
        records.save(self.record, folder)
        with self.assertRaisesRegex(schema.Invalid, "not overwritten"):
            records.save(self.record, folder)
        with self.assertRaisesRegex(schema.Invalid, "not overwritten"):  # before anything is measured
            cli.run_verb(cli.parser().parse_args(["run", "--model", str(self.folder / "tiny.gguf"), "--save", str(folder)]))
        (folder / "rivals.tiny.compute.squeeze.json").write_text("{}")
        with self.assertRaisesRegex(schema.Invalid, "not overwritten"):
            cli.squeeze_verb(cli.parser().parse_args(["squeeze", "--model", str(self.folder / "tiny.gguf"), "--save", str(folder)]))
        (folder / "rivals.tiny.compute.squeeze.json").unlink()
        later = {**self.record, "date": "2099-01-01T00:00:00Z"}
        self.assertEqual(records.last_like(later, folder)["date"], self.record["date"])
        for other in ({"profile": "throughput"}, {"intent": "investigate"}):
            self.assertIsNone(records.last_like({**later, **other}, folder))

    def test_regressions_need_more_than_threshold_and_spread(self):
        def slower(share):
            made = copy.deepcopy(self.record)
            for result in made["results"]:
                figure = result["figures"]["decode_tok_s"]
                figure.update(estimates.estimate([value * share for value in figure["samples"]]))
            return [row for row in records.changes(made, self.record) if row["worse"]]
        self.assertEqual(slower(0.97), [])
        self.assertEqual({row["figure"] for row in slower(0.9)}, {"decode_tok_s"})
        noisy = copy.deepcopy(self.record)
        for result in noisy["results"]:
            result["figures"]["decode_tok_s"].update(low=50.0, high=150.0)
        self.assertEqual([row for row in records.changes(noisy, self.record) if row["worse"]], [])

    def test_times_and_rates_improve_in_opposite_directions(self):
        self.assertEqual(report.advantage("decode_tok_s", 50.0, 100.0), 0.5)
        self.assertEqual(report.advantage("ttft_s", 0.2, 0.1), 0.5)


class Squeeze(unittest.TestCase):
    def story(self, equal=64):
        def figures(samples):
            return {"median": samples[1], "min": min(samples), "max": max(samples), "samples": samples}
        attempt = {"operation": "matvec", "shape": "64x64", "phase": "decode", "from": "a", "to": "b", "ratio": 1.2,
                   "kept": True, "verdict": "1.2 times as fast"}
        return {"kind": "squeeze", "intent": "calibrate", "version": "0.1.0", "commit": "3b9fa7b70d9a",
                "device": {"adapter": "Some GPU", "driver": "1.2", "provider": "dawn", "backend": "vulkan"},
                "settings": {"lane": "fast", "chunk": 512}, "cadence": {"batch": 32, "readback_interval": 1, "sweep": []},
                "tests": [{"test": "pp512", "before": figures([90.0, 100.0, 110.0]), "after": figures([99.0, 110.0, 111.0])},
                          {"test": "tg128 @ d64", "before": figures([9.0, 10.0, 11.0]), "after": figures([19.0, 20.0, 21.0])}],
                "red_flags": {"before": [{"name": "slow-host", "sentence": "The host is slow."}], "after": []}, "notes": [],
                "tuning": {"out_of_time": False, "attempts": [attempt]}, "commands": ["doppler bench"],
                "correctness": {"passed": True, "error_before": 0.001, "error_after": 0.001, "allowed": 0.01,
                                "equal_tokens": equal, "tokens": 64}}

    def record(self, folder, **more):
        program = folder / "doppler"
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(self.story(**more))}\nEND\n")
        program.chmod(0o755)
        (folder / "tiny.gguf").write_bytes(b"GGUF")
        return squeeze.record(squeeze.run(program, folder / "tiny.gguf", []), folder / "tiny.gguf", "rivals squeeze", "")

    def test_a_story_becomes_a_record(self):
        with tempfile.TemporaryDirectory() as folder:
            record = self.record(pathlib.Path(folder), equal=12)
        schema.check(record, "record", "record")
        page = report.markdown([record], [])
        for words in ("| tg128 @ d64 | doppler-native.tuned |", "| 2.00x | **differs** in 1 of 1, first at 12 (tokens) |",
                      "Kept: matvec 64x64, b instead of a", "Red flag before: The host is slow."):
            self.assertIn(words, page)
        for text in plots.of_records([record]).values():
            minidom.parseString(text)
        slower = copy.deepcopy(record)
        slower["results"][3]["figures"]["decode_tok_s"] = estimates.estimate([9.0, 10.0, 11.0])
        self.assertEqual([row["workload"] for row in records.changes(slower, record) if row["worse"]], ["tg128 @ d64"])

    def test_a_program_without_a_story_says_why(self):
        with self.assertRaisesRegex(process.Failed, "does not start"):
            squeeze.run(pathlib.Path("no/doppler"), pathlib.Path("x.gguf"), [])
        with self.assertRaisesRegex(process.Failed, "neither ppN nor tgN"):
            squeeze.workload("tg128 x8")


if __name__ == "__main__":
    unittest.main()
