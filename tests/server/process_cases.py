"""Servers of their own: what their flags do, and how they end."""

import json
import os
import tempfile
import time
import unittest

from figures import metric
from served import Served
from served_case import CHAT, FLAGS, GIVEN, TEXT, TOOLS, batch_until, begin_batch, chat, completion_lines, file_lines, upload

KEY = "secret-key"


class Defaults(unittest.TestCase):
    """The flags of "where a request does not say"."""

    def test_each_flag_is_what_a_request_does_not_say(self):
        numbers = {"temp": "temperature", "top-k": "top_k", "top-p": "top_p", "min-p": "min_p", "repeat-penalty": "repeat_penalty",
                   "presence-penalty": "presence_penalty", "frequency-penalty": "frequency_penalty", "top-n-sigma": "top_n_sigma",
                   "typical": "typical_p", "xtc-probability": "xtc_probability", "xtc-threshold": "xtc_threshold",
                   "dynatemp-range": "dynatemp_range", "dynatemp-exponent": "dynatemp_exponent", "mirostat": "mirostat_tau",
                   "mirostat-eta": "mirostat_eta", "dry-multiplier": "dry_multiplier", "dry-base": "dry_base",
                   "dry-allowed-length": "dry_allowed_length", "dry-range": "dry_range", "min-tokens": "min_tokens",
                   "max-tokens": "max_tokens", "seed": "seed", "chunk-tokens": "chunk_tokens"}
        given = {"temp": 0.5, "top-k": 7, "top-p": 0.5, "min-p": 0.25, "typical": 0.5, "xtc-probability": 0.5,
                 "xtc-threshold": 0.25, "mirostat-eta": 0.5}
        flags = [word for flag in numbers for word in ("--" + flag, str(given.get(flag, 3)))]
        served = Served(GIVEN.doppler, *flags, "--dry-breaker", "x", "--logit-bias", "7:-2", "--stop", "end", "--ignore-eos",
                        "--when-full", "slide", "--json-blanks")
        settings = served.ask("GET", "/props")[2]["default_generation_settings"]
        served.process.kill()
        served.end()
        others = {"logit_bias": {"7": -2.0}, "stop": ["end"], "ignore_eos": True, "when_full": "slide", "json_blanks": True}
        wanted = {**{name: given.get(flag, 3) for flag, name in numbers.items()}, **others}
        self.assertIn("x", settings.pop("dry_sequence_breakers"))
        self.assertEqual(settings, wanted)

    def test_they_act_and_yield(self):
        served = Served(GIVEN.doppler, "--ctx", "256", "--parallel", "2", "--seed", "42", "--min-tokens", "3", "--max-tokens", "12",
                        "--when-full", "slide", "--stop", "never written", template=None)
        self.addCleanup(served.end)
        while served.ask("GET", "/health")[0] != 200:
            self.assertIsNone(served.process.poll())
            time.sleep(0.1)

        def answer(path, body):
            status, _, told = served.post(path, body)
            self.assertEqual(status, 200, told)
            return told

        body = {"prompt": "Once upon a time", "temperature": 1.5, "cache_prompt": False}
        texts = [answer(TEXT, body)["choices"][0]["text"] for _ in range(2)]
        self.assertEqual(texts[0], texts[1], "the flag's seed")
        others = {answer(TEXT, {**body, "seed": -1})["choices"][0]["text"] for _ in range(3)}
        self.assertNotEqual(others, {texts[0]})
        self.assertEqual(answer(TEXT, {**body, "ignore_eos": True})["usage"]["completion_tokens"], 12)
        self.assertEqual(answer(TEXT, {**body, "max_tokens": 1})["usage"]["completion_tokens"], 1, "min-tokens yields")
        answer(TEXT, {**body, "prompt": [300] * 300})  # it slides
        schema = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"], "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"schema": schema}}
        self.assertEqual(answer(CHAT, chat(response_format=form, max_tokens=50))["choices"][0]["message"]["content"], '{"a":1}')
        status, _, told = served.post(CHAT, chat(response_format=form, min_tokens=2))
        self.assertEqual((status, told["error"]["param"]), (400, "min_tokens"))
        # The shipped model's template knows no tools and leaves system messages out.
        prompt = answer("/apply-template", chat(tools=TOOLS))["prompt"]
        self.assertIn('"name":"f"', prompt)
        tools = [*TOOLS, {"type": "function", "function": {"name": "g"}}]
        message = answer(CHAT, chat(tools=tools, tool_choice="required", max_tokens=50))["choices"][0]["message"]
        self.assertIn(message["tool_calls"][0]["function"]["name"], "fg")
        self.assertEqual(message["tool_calls"][0]["function"]["arguments"], "{}")
        self.assertEqual(answer("/api/show", {"model": "storyteller"})["capabilities"], ["completion", "tools"])


class Devices(unittest.TestCase):
    def test_two_share_the_requests_and_are_counted(self):
        served = Served(GIVEN.doppler, "--devices", "0,0", "--ctx", "256", "--parallel", "2", "--no-warm-up", template=None)
        self.addCleanup(served.end)
        body = {"prompt": "Once upon a time", "n": 4, "max_tokens": 8, "temperature": 0, "cache_prompt": False, "ignore_eos": True}
        while (told := served.post(TEXT, body))[0] == 503:
            time.sleep(0.1)
        self.assertEqual(told[0], 200, told)
        self.assertEqual(len({choice["text"] for choice in told[2]["choices"]}), 1)
        page = served.ask("GET", "/metrics")[2]
        for device in "01":
            for name in ("requests_running", "cache_usage_perc", "lost"):
                self.assertRegex(page, rf'doppler:device_{name}\{{model_name="storyteller",device="{device}",adapter="[^"]+"\}} 0\n')
        self.assertRegex(page, r'vllm:cache_config_info\{model_name="storyteller",block_size="\d+",num_gpu_blocks="\d+"\} 1\n')
        self.assertIn('vllm:gpu_cache_usage_perc{model_name="storyteller"}', page)


class WarmUp(unittest.TestCase):
    def test_it_counts_as_no_request(self):
        served = Served(GIVEN.doppler, "--ctx", "128", "--parallel", "16", template=None)
        self.addCleanup(served.end)
        seen, end = [], None
        while not end or time.monotonic() < end:
            slot = served.ask("GET", "/slots")[2][0]
            running = int(metric(served.ask("GET", "/metrics")[2], "vllm:num_requests_running"))
            seen.append((slot["running"], slot["waiting"], running))
            if not end and slot["state"] == "ready":
                end = time.monotonic() + 1  # of the steps of several sequences, which warm up after that
        self.assertEqual(set(seen), {(0, 0, 0)})


class Ends(unittest.TestCase):
    def test_a_batch_goes_on_after_a_kill(self):
        with tempfile.TemporaryDirectory() as folder:
            flags = (*FLAGS, "--files", os.path.join(folder, "files"))
            served = Served(GIVEN.doppler, *flags)
            batch = begin_batch(served, upload(served, completion_lines(6, max_tokens=30, ignore_eos=True)))
            batch_until(served, batch, lambda now: now["request_counts"]["completed"] > 0)
            served.process.kill()
            served.end()
            served = Served(GIVEN.doppler, *flags)
            done = batch_until(served, batch, lambda now: now["status"] == "completed")
            self.assertEqual(set(file_lines(served, done["output_file_id"])), set("012345"))
            served.end()

    def test_answers_under_way_are_told_before_the_end(self):
        served = Served(GIVEN.doppler, *FLAGS, "--api-key", KEY)
        self.assertEqual(served.post(TEXT, {"prompt": "x"})[0], 401)
        self.assertEqual(served.post(TEXT, {"prompt": "x"}, Authorization="Bearer wrong")[0], 401)
        connection = served.connect()
        connection.request("POST", TEXT, json.dumps({"prompt": "The fox", "max_tokens": 30, "ignore_eos": True}),
                           {"x-api-key": KEY})
        while served.ask("GET", "/slots", Authorization="Bearer " + KEY)[2][0]["requests"] == 0:
            time.sleep(0.02)
        lines = served.end()
        self.assertEqual(served.process.returncode, 0)
        answer = json.loads(connection.getresponse().read())
        self.assertEqual(answer["usage"]["completion_tokens"], 30)
        self.assertEqual([line["generated_tokens"] for line in lines if line.get("finish") == "length"], [30])
