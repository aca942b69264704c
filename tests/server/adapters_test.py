"""`doppler serve` with adapters: chosen by model and by number, mixed in one batch, loaded and unloaded while it runs.
  python3 adapters_test.py --doppler PROGRAM --adapters FOLDER [unittest options]
FOLDER is tests/data/adapters.tar.xz, unpacked. Its models have no tokenizer: prompts are token ids, and answers are
told apart by their log-probabilities."""

import os
import sys
import threading
import time
import unittest

from served import Served

DOPPLER, ADAPTERS = "doppler", ""
PROMPT = [3, 17, 99, 42, 5, 60, 7, 11]
FLAGS = ("--ctx", "64", "--parallel", "4", "--temp", "0", "--lane", "exact", "--lora-slots", "2", "--lora-rank", "12")


def adapter(name):
    return os.path.join(ADAPTERS, "llama", "adapters", name)


def serve(*flags):
    served = Served(DOPPLER, *FLAGS, *flags, model="base=" + os.path.join(ADAPTERS, "llama"))
    while served.ask("GET", "/health")[0] != 200:
        assert served.process.poll() is None
        time.sleep(0.1)
    return served


def setUpModule():
    AdapterCase.served = serve(
        "--lora", "all=" + adapter("all_r8"), "--lora", "qv=" + adapter("qv_r4"), "--lora-updates"
    )


def tearDownModule():
    AdapterCase.served.end()
    assert AdapterCase.served.process.returncode == 0


ROUNDING = 2e-5  # of log-probabilities in the lane exact


def difference(a, b):
    return max(abs(one - other) for one, other in zip(a, b, strict=True))


class AdapterCase(unittest.TestCase):
    served = None

    def numbers(self, **fields):
        """The log-probabilities of an answer."""
        body = {"prompt": PROMPT, "max_tokens": 6, "logprobs": 1, "ignore_eos": True, **fields}
        status, _, answer = self.served.post("/v1/completions", body)
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["model"], fields.get("model", "base"))
        return answer["choices"][0]["logprobs"]["token_logprobs"]

    def refused(self, path, body, status=400):
        got, _, answer = self.served.post(path, body)
        self.assertEqual(got, status, answer)
        return answer["error"]["message"]


class Choosing(AdapterCase):
    def test_models_lists_adapters(self):
        models = {model["id"]: model for model in self.served.ask("GET", "/v1/models")[2]["data"]}
        self.assertEqual(models["all"]["parent"], "base")
        self.assertEqual(self.served.ask("GET", "/v1/models/qv")[2]["root"], adapter("qv_r4"))

    def test_by_model_and_by_number_is_the_same(self):
        base, by_model = self.numbers(), self.numbers(model="all")
        self.assertNotEqual(base, by_model)
        self.assertEqual(self.numbers(lora=[{"id": 0, "scale": 1}]), by_model)
        self.assertEqual(self.numbers(lora=[]), base)
        self.assertEqual(self.numbers(lora=[{"id": 0, "scale": 0}]), base)
        half, both = self.numbers(lora=[{"id": 0, "scale": 0.5}]), self.numbers(lora=[{"id": 0}, {"id": 1}])
        self.assertEqual(len({tuple(each) for each in (base, by_model, half, both)}), 4)

    def test_requests_of_all_kinds_at_once_are_each_by_itself(self):
        kinds = [{}, {"model": "all"}, {"model": "qv"}, {"lora": [{"id": 0, "scale": 0.5}]}] * 3
        alone = [self.numbers(**kind) for kind in kinds[:4]] * 3
        got = [None] * len(kinds)

        def ask(i):
            got[i] = self.numbers(**kinds[i])
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(kinds))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one, same in zip(got, alone):  # prompts of several rows are summed in another order than those of few
            self.assertLess(difference(one, same), ROUNDING)
            self.assertEqual([kind for kind in alone[:4] if difference(one, kind) < 100 * ROUNDING], [same])

    def test_standing_scales_hold_where_a_request_does_not_say(self):
        base, scaled = self.numbers(lora=[]), self.numbers(lora=[{"id": 1, "scale": 2}])
        self.assertEqual(self.served.post("/lora-adapters", [{"id": 1, "scale": 2}])[0], 200)
        self.assertEqual(self.numbers(), scaled)
        self.assertEqual([each["scale"] for each in self.served.ask("GET", "/lora-adapters")[2]][:2], [0, 2])
        self.assertEqual(self.served.post("/lora-adapters", [])[0], 200)
        self.assertEqual(self.numbers(), base)

    def test_what_is_not_there_is_named(self):
        refused = self.refused("/v1/completions", {"prompt": PROMPT, "lora": [{"id": 9}]})
        self.assertIn('Field "lora" names adapter 9', refused)
        self.assertIn('Field "lora" must be a list', self.refused("/v1/completions", {"prompt": PROMPT, "lora": [{}]}))


class Updates(AdapterCase):
    def test_an_adapter_comes_and_goes(self):
        before = self.numbers()
        self.assertEqual(self.served.post("/v1/load_lora_adapter",
                                          {"lora_name": "late", "lora_path": adapter("layers")})[0], 200)
        self.assertNotEqual(self.numbers(model="late"), before)
        self.assertEqual(self.served.post("/v1/unload_lora_adapter", {"lora_name": "late"})[0], 200)
        self.refused("/v1/completions", {"prompt": PROMPT, "model": "late"}, 404)
        self.refused("/v1/unload_lora_adapter", {"lora_name": "late"}, 404)
        self.assertEqual(self.numbers(), before)

    def test_what_cannot_be_loaded_is_said(self):
        load = "/v1/load_lora_adapter"
        self.assertIn('Field "lora_name"', self.refused(load, {"lora_path": adapter("layers")}))
        self.assertIn("model's name", self.refused(load, {"lora_name": "base", "lora_path": adapter("layers")}))
        self.assertIn("replaces whole tensors",
                      self.refused(load, {"lora_name": "whole", "lora_path": adapter("modules_to_save")}, 400))
        other = os.path.join(ADAPTERS, "gemma3", "adapters", "all_r8")
        self.assertIn("does not fit the model", self.refused(load, {"lora_name": "other", "lora_path": other}))

    def test_clients_may_not_without_the_flag(self):
        served = serve()
        status, _, answer = served.post("/v1/load_lora_adapter", {"lora_name": "a", "lora_path": adapter("layers")})
        self.assertEqual(status, 403, answer)
        self.assertIn("--lora-updates", answer["error"]["message"])
        served.end()


if __name__ == "__main__":
    for flag in ("--doppler", "--adapters"):
        if flag in sys.argv:
            at = sys.argv.index(flag)
            globals()[flag.strip("-").upper()] = sys.argv[at + 1]
            del sys.argv[at:at + 2]
    unittest.main()
