"""`doppler serve` with the shipped model: each API whole and streamed, errors by name, limits, clients that misbehave,
an orderly end. One server for all of it, since loading takes longest.
  python3 server_test.py --doppler PROGRAM [--embedding-model FOLDER] [--scoring-model FOLDER] [unittest options]"""

import base64
import json
import os
import shutil
import socket
import struct
import sys
import tempfile
import time
import unittest

from served import Served

DOPPLER = "doppler"
EMBEDDING_MODEL = SCORING_MODEL = ""
KEY = "secret-key"
FLAGS = ("--ctx", "512", "--parallel", "4", "--queue", "8", "--head-timeout", "2", "--body-timeout", "2",
         "--body", "64K", "--temp", "0", "--any-name")
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


# The embedding model's folder has none: enough for "a", "b" and "ab".
TOKENIZER = {"added_tokens": [], "normalizer": None, "pre_tokenizer": None,
             "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 5, "b": 6, "ab": 7}, "merges": [["a", "b"]]}}


def chat(**fields):
    return {"messages": [{"role": "user", "content": "The fox"}], "max_tokens": 6, **fields}


def setUpModule():
    models = ()
    if EMBEDDING_MODEL:
        folder = tempfile.TemporaryDirectory()
        unittest.addModuleCleanup(folder.cleanup)
        shutil.copytree(EMBEDDING_MODEL, folder.name, dirs_exist_ok=True)
        with open(os.path.join(folder.name, "tokenizer.json"), "w", encoding="utf-8") as file:
            json.dump(TOKENIZER, file)
        models = ("-m", "vectors=" + folder.name)
    if SCORING_MODEL:
        models += ("-m", "scores=" + SCORING_MODEL)
    ServerCase.served = Served(DOPPLER, *FLAGS, *models)
    # It answers before the model is there.
    ServerCase.healths = [ServerCase.served.ask("GET", "/health")]
    while ServerCase.healths[-1][0] != 200:
        assert ServerCase.served.process.poll() is None
        time.sleep(0.01)
        ServerCase.healths.append(ServerCase.served.ask("GET", "/health"))


def tearDownModule():
    lines = ServerCase.served.end()
    assert ServerCase.served.process.returncode == 0
    assert all(line["status"] < 500 for line in lines if line["path"] != "/health"), lines


class ServerCase(unittest.TestCase):
    served = healths = None

    def good(self, path, body):
        status, _, answer = self.served.post(path, body)
        self.assertEqual(status, 200, answer)
        return answer

    def refused(self, path, body, status=400, **fields):
        got, _, answer = self.served.post(path, body, **fields)
        self.assertEqual(got, status, answer)
        return answer["error"]


def completion_lines(count, **fields):
    return "\n".join(json.dumps({"custom_id": str(i), "method": "POST", "url": TEXT, "body": {"prompt": "Once", **fields}})
                     for i in range(count))


def upload(served, lines):
    """A file's id."""
    form = ('--B\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--B\r\n'
            f'Content-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n{lines}\r\n--B--\r\n')
    return served.post("/v1/files", form, Content_Type="multipart/form-data; boundary=B")[2]["id"]


def begin_batch(served, file, endpoint=TEXT):
    body = {"input_file_id": file, "endpoint": endpoint, "completion_window": "24h"}
    return served.post("/v1/batches", body)[2]["id"]


def batch_until(served, batch, is_reached):
    while not is_reached(now := served.ask("GET", "/v1/batches/" + batch)[2]):
        time.sleep(0.05)
    return now


def file_lines(served, file):
    return {line["custom_id"]: line for line in map(json.loads, served.ask("GET", f"/v1/files/{file}/content")[2].splitlines())}


class OpenAI(ServerCase):
    def test_health_is_told_at_once(self):
        states = list(dict.fromkeys(health[2]["status"] for health in self.healths))
        self.assertEqual([state for state in states if state != "unloaded"], ["loading", "warming up", "ok"])
        self.assertTrue(all((status == 200) == (body["status"] == "ok") for status, _, body in self.healths))

    def test_a_chat_whole_and_streamed_is_the_same(self):
        whole = self.good(CHAT, chat())
        text = whole["choices"][0]["message"]["content"]
        self.assertEqual(whole["choices"][0]["finish_reason"], "length")
        self.assertIsNone(whole["choices"][0]["message"]["refusal"])
        self.assertEqual(whole["usage"]["completion_tokens"], 6)
        events = self.served.events(CHAT, chat(stream=True, stream_options={"include_usage": True}))
        self.assertEqual(events.pop(), "[DONE]")
        usage = events.pop()
        self.assertEqual((usage["choices"], usage["usage"]["completion_tokens"]), ([], 6))
        self.assertTrue(all(event["usage"] is None for event in events), "of the others it is null")
        self.assertNotIn("usage", self.served.events(CHAT, chat(stream=True))[0])
        deltas = [event["choices"][0]["delta"] for event in events]
        self.assertEqual([delta.get("role") for delta in deltas].count("assistant"), 1)
        self.assertEqual("".join(delta.get("content", "") for delta in deltas), text)
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")

    def test_completions_of_many_prompts_and_choices(self):
        answer = self.good(TEXT, {"prompt": ["Once", [1, 359]], "n": 2, "max_tokens": 3, "echo": True, "seed": 1})
        texts = [choice["text"] for choice in answer["choices"]]
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2, 3])
        self.assertTrue(texts[0].startswith("Once") and texts[1].startswith("Once"), texts)
        self.assertEqual(answer["usage"]["completion_tokens"], 12)
        stopped = self.good(TEXT, {"prompt": "Once upon a", "max_tokens": 20, "stop": [" time"]})
        self.assertEqual((stopped["choices"][0]["text"], stopped["choices"][0]["finish_reason"]), ("", "stop"))
        biased = self.good(TEXT, {"prompt": "Once", "max_tokens": 2, "logit_bias": {"300": 100}})
        self.assertEqual(biased["choices"][0]["text"], self.good("/detokenize", {"tokens": [300, 300]})["content"])

    def test_timings_are_told_where_they_are_asked_for(self):
        whole = self.good(TEXT, {"prompt": "Once", "max_tokens": 4, "timings_per_token": True})
        timings = whole["timings"]
        self.assertEqual((timings["prompt_n"] + timings["cache_n"], timings["predicted_n"]), (whole["usage"]["prompt_tokens"], 4))
        self.assertNotIn("timings", self.good(TEXT, {"prompt": "Once", "max_tokens": 1}))
        for path, body in ((TEXT, {"prompt": "Once", "max_tokens": 4}), (CHAT, chat())):
            events = self.served.events(path, {**body, "stream": True, "timings_per_token": True})[:-1]
            told = [event["timings"]["predicted_n"] for event in events]
            self.assertEqual((told, told[-1]), (sorted(told), body["max_tokens"]))

    def test_progress_of_a_prompt_is_told(self):
        body = {"prompt": list(range(300, 700)), "max_tokens": 2, "stream": True, "return_progress": True}
        events = self.served.events(TEXT, body)[:-1]
        progress = [event["prompt_progress"] for event in events if "prompt_progress" in event]
        self.assertEqual((progress[-1]["total"], progress[-1]["processed"]), (400, 400))
        self.assertGreater(progress[-1]["time_ms"], 0)
        self.assertNotIn("prompt_progress", json.dumps(self.served.events(TEXT, {**body, "return_progress": False})))

    def test_a_prompt_may_be_kept_apart(self):
        prompt = {"prompt": list(range(900, 1200)), "max_tokens": 1}
        cached = lambda **fields: self.good(TEXT, {**prompt, **fields})["usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertEqual((cached(cache_prompt=False), cached(cache_prompt=False), cached()), (0, 0, 0))
        self.assertGreater(cached(), 200)
        self.assertEqual(cached(cache_prompt=False), 0)

    def test_log_probabilities(self):
        fields = {"logprobs": True, "top_logprobs": 2, "max_tokens": 4}
        choice = self.good(CHAT, chat(**fields))["choices"][0]
        content = choice["logprobs"]["content"]
        self.assertEqual("".join(item["token"] for item in content), choice["message"]["content"])
        for item in content:  # greedy: the chosen one is the best
            self.assertEqual(bytes(item["bytes"]).decode(), item["token"])
            best, second = item["top_logprobs"]
            self.assertEqual((best["token"], best["logprob"]), (item["token"], item["logprob"]))
            self.assertGreaterEqual(0, best["logprob"])
            self.assertGreaterEqual(best["logprob"], second["logprob"])
        events = self.served.events(CHAT, chat(stream=True, **fields))[:-1]
        parts = [event["choices"][0]["logprobs"] for event in events]
        self.assertEqual([item for part in parts if part for item in part["content"]], content)
        told = self.good(TEXT, {"prompt": "Once", "max_tokens": 3, "logprobs": 1})["choices"][0]
        self.assertEqual("".join(told["logprobs"]["tokens"]), told["text"])
        self.assertEqual(told["logprobs"]["text_offset"][1], len(told["logprobs"]["tokens"][0]))
        self.assertIsNone(self.good(TEXT, {"prompt": "Once", "max_tokens": 1})["choices"][0]["logprobs"])
        self.assertEqual(self.refused(TEXT, {"prompt": "x", "logprobs": 1, "echo": True})["param"], "logprobs")

    def test_chunks_have_so_many_tokens_at_most(self):
        for most in (1, 3):
            body = chat(stream=True, logprobs=True, max_tokens=12, stream_options={"chunk_tokens": most})
            parts = [event["choices"][0]["logprobs"] for event in self.served.events(CHAT, body)[:-1]]
            counts = [len(part["content"]) for part in parts if part]
            self.assertEqual((sum(counts), max(counts) <= most), (12, True), counts)
        self.assertEqual(self.refused(CHAT, chat(stream_options={"chunk_tokens": 257}))["param"], "chunk_tokens")

    def test_a_forced_call_is_told(self):
        body = chat(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "f"}})
        call = self.good(CHAT, body)["choices"][0]["message"]["tool_calls"][0]
        self.assertEqual((call["function"]["name"], len(call["id"])), ("f", 9))
        events = self.served.events(CHAT, {**body, "stream": True})[:-1]
        calls = [call for event in events for call in event["choices"][0]["delta"].get("tool_calls", [])]
        self.assertEqual([call["function"].get("name") for call in calls][:1], ["f"])
        self.assertEqual(sum("id" in call for call in calls), 1)

    def test_answers_keep_to_their_form(self):
        schema = {"type": "object", "properties": {"animal": {"enum": ["fox", "crow"]}, "legs": {"enum": [2, 4]}},
                  "required": ["animal", "legs"], "additionalProperties": False,
                  "x-guidance": {"whitespace_flexible": False}}
        form = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
        fields = {"max_tokens": 100, "temperature": 1, "n": 2}
        for choice in self.good(CHAT, chat(response_format=form, **fields))["choices"]:
            answer = json.loads(choice["message"]["content"])
            self.assertEqual((list(answer), choice["finish_reason"]), (["animal", "legs"], "stop"))
        for grammar in ({"guided_regex": "(fox|crow){3}"}, {"guided_choice": ["foxfoxcrow", "crow"]},
                        {"grammar": 'start: ("fox" | "crow") /(fox|crow){0,2}/'},
                        {"grammar": 'root ::= ("fox" | "crow") root?'}):
            text = self.good(TEXT, {"prompt": "The", "logit_bias": {}, **fields, "max_tokens": 30, **grammar})
            for choice in text["choices"]:
                self.assertRegex(choice["text"], "^((fox|crow)+(f|fo|c|cr|cro)?)$")
        # The other APIs' names of a form.
        answer = self.good("/api/chat", {"messages": [{"role": "user", "content": "x"}], "format": schema,
                                         "stream": False})["message"]["content"]
        self.assertEqual(list(json.loads(answer)), ["animal", "legs"])
        for asked in ({"output_config": {"format": {"type": "json_schema", "schema": schema}}},
                      {"output_format": {"type": "json_schema", "schema": schema}}):
            answer = self.good("/v1/messages", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 100, **asked})
            self.assertEqual(list(json.loads(answer["content"][0]["text"])), ["animal", "legs"])
        whole = self.good("/v1/responses", {"input": "x", "max_output_tokens": 100,
                                            "text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}})
        self.assertEqual(list(json.loads(whole["output"][0]["content"][0]["text"])), ["animal", "legs"])

    def test_a_forced_call_keeps_to_its_schema(self):
        tools = [{"type": "function", "function": {"name": name, "parameters": {
            "type": "object", "properties": {"of": {"enum": ["a \"fox\"", "crow"]}}, "required": ["of"],
            "additionalProperties": False}}} for name in ("legs", "wings")]
        for choice in ("required", {"type": "function", "function": {"name": "wings"}}):
            message = self.good(CHAT, chat(tools=tools, tool_choice=choice, max_tokens=200))["choices"][0]["message"]
            call = message["tool_calls"][0]["function"]
            self.assertIn(call["name"], ("legs", "wings"))
            self.assertIn(json.loads(call["arguments"])["of"], ('a "fox"', "crow"))
        # A schema beside tools: an answer or a call.
        form = {"type": "json_schema", "json_schema": {"schema": {"enum": ["none"]}}}
        message = self.good(CHAT, chat(tools=tools, response_format=form, max_tokens=200))["choices"][0]["message"]
        self.assertTrue(message.get("tool_calls") or message["content"] == '"none"', message)

    def test_responses(self):
        whole = self.good("/v1/responses", {"input": "The fox", "max_output_tokens": 4})
        self.assertEqual((whole["status"], whole["output"][0]["content"][0]["type"]), ("incomplete", "output_text"))
        self.assertEqual(self.served.ask("GET", "/v1/responses/" + whole["id"])[2]["id"], whole["id"])
        events = self.served.events("/v1/responses", {"input": [{"role": "user", "content": "And?"}], "stream": True,
                                                      "previous_response_id": whole["id"], "max_output_tokens": 4})
        self.assertEqual([event["sequence_number"] for event in events], list(range(len(events))))
        self.assertEqual((events[0]["type"], events[-1]["type"]), ("response.created", "response.incomplete"))
        self.assertGreater(events[-1]["response"]["usage"]["input_tokens"], whole["usage"]["input_tokens"])
        self.assertEqual(self.refused("/v1/responses", {"input": "x", "previous_response_id": "no"})["param"],
                         "previous_response_id")
        self.assertNotIn("user", whole)
        self.assertNotIn("usage", events[0]["response"])
        items = self.served.ask("GET", f"/v1/responses/{whole['id']}/input_items")[2]
        self.assertEqual([item["content"] for item in items["data"]], [[{"type": "input_text", "text": "The fox"}]])
        self.assertEqual((items["object"], items["first_id"]), ("list", items["data"][0]["id"]))
        self.assertEqual(self.good("/v1/responses/input_tokens", {"input": "The fox"}),
                         {"object": "response.input_tokens", "input_tokens": whole["usage"]["input_tokens"]})

    def test_responses_tell_what_is_asked_for(self):
        body = {"input": "The fox", "max_output_tokens": 4, "top_logprobs": 2, "timings_per_token": True}
        whole = self.good("/v1/responses", body)
        part = whole["output"][0]["content"][0]
        self.assertEqual("".join(item["token"] for item in part["logprobs"]), part["text"])
        self.assertEqual({len(item["top_logprobs"]) for item in part["logprobs"]}, {2})
        self.assertEqual((whole["top_logprobs"], whole["timings"]["predicted_n"]), (2, 4))
        events = self.served.events("/v1/responses", {**body, "stream": True})
        deltas = [event for event in events if event["type"] == "response.output_text.delta"]
        self.assertEqual([item for event in deltas for item in event["logprobs"]], part["logprobs"])
        self.assertTrue(all(event["timings"]["predicted_n"] for event in deltas))
        done = [event for event in events if event["type"] == "response.output_text.done"][0]
        self.assertEqual(done["logprobs"], part["logprobs"])
        included = self.good("/v1/responses", {"input": "x", "max_output_tokens": 2, "include": ["message.output_text.logprobs"]})
        self.assertEqual(len(included["output"][0]["content"][0]["logprobs"]), 2)
        events = self.served.events("/v1/responses", {"input": "fox " * 100, "max_output_tokens": 2, "stream": True,
                                                      "return_progress": True})
        progress = [event["prompt_progress"] for event in events if "prompt_progress" in event]
        self.assertEqual(progress[-1]["total"], progress[-1]["processed"])
        # Fields of chats hold here too.
        biased = self.good("/v1/responses", {"input": "x", "max_output_tokens": 2, "logit_bias": {"300": 100}})
        self.assertEqual(biased["output"][0]["content"][0]["text"], self.good("/detokenize", {"tokens": [300, 300]})["content"])

    def test_a_batch_is_answered_and_another_cancelled(self):
        bad = json.dumps({"custom_id": "bad", "method": "POST", "url": TEXT, "body": {"prompt": "x", "temperature": -1}})
        file = upload(self.served, completion_lines(1, max_tokens=3) + "\n" + bad)
        done = batch_until(self.served, begin_batch(self.served, file), lambda now: now["status"] in ("completed", "failed"))
        self.assertEqual(done["request_counts"], {"total": 2, "completed": 1, "failed": 1}, done)
        answer = file_lines(self.served, done["output_file_id"])["0"]["response"]["body"]
        self.assertEqual(answer["choices"][0]["text"], self.good(TEXT, {"prompt": "Once", "max_tokens": 3})["choices"][0]["text"])
        self.assertIn("temperature", file_lines(self.served, done["error_file_id"])["bad"]["error"]["message"])
        long = begin_batch(self.served, upload(self.served, completion_lines(1, max_tokens=400, ignore_eos=True)))
        self.served.post(f"/v1/batches/{long}/cancel", None)
        cancelled = batch_until(self.served, long, lambda now: now["status"] == "cancelled")
        # Absent facts have no field, as in OpenAI's specification.
        self.assertEqual([name for name in cancelled if cancelled[name] is None], ["metadata"])
        self.assertIn("cancelled_at", cancelled)
        self.assertNotIn("output_file_id", cancelled)
        listed = self.served.ask("GET", "/v1/batches?limit=1")[2]
        self.assertEqual((listed["data"][0]["id"], listed["has_more"]), (long, True))
        self.assertTrue(self.served.ask("DELETE", "/v1/files/" + file)[2]["deleted"])
        self.assertEqual(self.served.ask("GET", "/v1/files/" + file)[0], 404)
        self.assertEqual(self.refused("/v1/batches", {"input_file_id": file, "endpoint": TEXT})["param"], "input_file_id")

    def test_a_line_of_a_batch_calls_tools(self):
        body = chat(tools=TOOLS, tool_choice="required")
        line = json.dumps({"custom_id": "a", "method": "POST", "url": CHAT, "body": body})
        done = batch_until(self.served, begin_batch(self.served, upload(self.served, line), CHAT),
                           lambda now: now["status"] in ("completed", "failed"))
        answer = file_lines(self.served, done["output_file_id"])["a"]["response"]["body"]
        calls = [answer["choices"][0]["message"]["tool_calls"][0]["function"]
                 for answer in (answer, self.good(CHAT, body))]
        self.assertEqual(calls[0], calls[1])

    def test_errors_name_the_field(self):
        for fields, param in (({"temperature": "hot"}, "temperature"), ({"messages": "x"}, "messages"),
                              ({"response_format": {"type": "xml"}}, "response_format"),
                              ({"response_format": {"type": "json_schema", "json_schema": {"schema": {
                                  "type": "array", "uniqueItems": True}}}}, "response_format"),
                              ({"logprobs": True, "top_logprobs": 21}, "top_logprobs")):
            self.assertEqual(self.refused(CHAT, chat(**fields))["param"], param)
        self.assertIn("not valid JSON", self.refused(CHAT, "{")["message"])
        self.assertIn("deeper", self.refused(CHAT, "[" * 60000)["message"])
        self.assertIn("temperature", self.refused(CHAT, chat(temperature=-1))["message"])
        self.assertEqual(self.refused("/v1/embeddings", {"input": "x"})["type"], "invalid_request_error")
        self.assertEqual(self.refused("/nothing", {}, 404)["type"], "invalid_request_error")
        status, fields, _ = self.served.ask("GET", CHAT)
        self.assertEqual((status, fields["Allow"]), (405, "POST"))
        self.assertIn("context", self.refused(TEXT, {"prompt": "fox " * 2000})["message"])
        self.good(CHAT, chat(no_such_field=1))

    def test_what_a_prompt_cannot_be_is_told_before_a_stream_begins(self):
        text = "fox " * 2000
        messages = [{"role": "user", "content": text}]
        for path, body in ((CHAT, {"messages": messages}), (TEXT, {"prompt": text}), ("/v1/responses", {"input": text}),
                           ("/v1/messages", {"messages": messages, "max_tokens": 5}), ("/api/chat", {"messages": messages}),
                           ("/api/generate", {"prompt": text})):
            for stream in (False, True):
                error = self.refused(path, {**body, "stream": stream})
                if path == "/v1/messages":
                    self.assertEqual(error["type"], "invalid_request_error")
                    self.assertRegex(error["message"], r"^prompt is too long: \d+ tokens > 511 maximum$")
                    continue
                self.assertIn("maximum context length is 512 tokens", error["message"] if "/v1/" in path else error)
                if "/v1/" in path:
                    self.assertEqual((error["code"], error["type"]), ("context_length_exceeded", "invalid_request_error"))
        for fields in ({"prompt": [10**6]}, {"prompt": "x", "temperature": -1},
                       {"prompt": ["x", [10**6]], "n": 2}):
            self.refused(TEXT, {**fields, "stream": True})

    def test_an_assistants_last_message_is_continued(self):
        messages = [{"role": "user", "content": "The fox"}, {"role": "assistant", "content": "Once upon"}]
        prompt = "user: The fox\nassistant: Once upon"
        ids = self.good("/tokenize", {"content": prompt})["tokens"]
        goes_on = self.good(TEXT, {"prompt": ids, "max_tokens": 5})["choices"][0]["text"]
        asked = {"messages": messages, "max_tokens": 5}
        self.assertEqual(self.good("/apply-template", {**asked, "continue_final_message": True})["prompt"], prompt)
        answer = self.good(CHAT, {**asked, "continue_final_message": True, "add_generation_prompt": False})
        self.assertEqual(answer["choices"][0]["message"]["content"], goes_on)
        self.assertEqual(self.good("/v1/messages", asked)["content"][0]["text"], goes_on)
        answer = self.good("/api/chat", {"messages": messages, "stream": False, "options": {"num_predict": 5}})
        self.assertEqual(answer["message"]["content"], goes_on)
        self.assertEqual(self.good("/apply-template", asked)["prompt"], prompt + "\n")

    def test_what_the_server_tells_of_itself(self):
        ids = self.good("/tokenize", {"content": "The fox"})["tokens"]
        self.assertEqual(self.good("/detokenize", {"tokens": ids})["content"], "The fox")
        self.assertEqual(self.good("/apply-template", chat())["prompt"], "user: The fox\n")
        self.assertEqual(self.served.ask("GET", "/v1/models")[2]["data"][0]["id"], "storyteller")
        self.assertEqual(self.served.ask("GET", "/slots")[2][0]["places"], 4)
        self.assertEqual(self.served.ask("GET", "/props")[2]["total_slots"], 4)
        page = self.served.ask("GET", "/metrics")[2]
        self.assertIn('vllm:num_requests_running{model_name="storyteller"}', page)


class Others(ServerCase):
    def test_messages(self):
        body = {"model": "claude", "max_tokens": 5, "system": [{"type": "text", "text": "x-anthropic-billing-header: 1"}],
                "messages": [{"role": "user", "content": [{"type": "text", "text": "The fox"}]}]}
        whole = self.good("/v1/messages", body)
        self.assertEqual((whole["type"], whole["stop_reason"]), ("message", "max_tokens"))
        counted = self.good("/v1/messages/count_tokens", body)["input_tokens"]
        self.assertEqual(counted, whole["usage"]["input_tokens"] + whole["usage"]["cache_read_input_tokens"])
        events = self.served.events("/v1/messages", {**body, "stream": True})
        self.assertEqual((events[0]["type"], events[1]["type"], events[-1]["type"]),
                         ("message_start", "content_block_start", "message_stop"))
        text = "".join(event["delta"]["text"] for event in events if event["type"] == "content_block_delta")
        self.assertEqual(text, whole["content"][0]["text"])
        self.assertEqual(self.refused("/v1/messages", {"messages": [{"role": "robot", "content": ""}]})["type"],
                         "invalid_request_error")

    def test_ollama(self):
        body = {"model": "storyteller:latest", "messages": [{"role": "user", "content": "The fox"}], "tools": [],
                "options": {"num_predict": 5, "num_ctx": 100}}
        _, fields, text = self.served.post("/api/chat", body)
        self.assertEqual(fields["Content-Type"], "application/x-ndjson")
        lines = [json.loads(line) for line in text.splitlines()]
        self.assertEqual((lines[-1]["done"], lines[-1]["done_reason"], lines[-1]["eval_count"]), (True, "length", 5))
        whole = self.good("/api/chat", {**body, "stream": False})
        self.assertEqual("".join(line["message"]["content"] for line in lines), whole["message"]["content"])
        self.assertTrue(self.good("/api/generate", {"prompt": "Once", "raw": True, "stream": False,
                                                    "options": {"num_predict": 2}})["response"])
        self.assertIsInstance(self.refused("/api/chat", {"messages": 1}), str)

    def test_what_clients_of_ollama_look_at_first(self):
        for method in ("GET", "HEAD"):
            status, _, text = self.served.ask(method, "/")
            self.assertEqual((status, text), (200, "Ollama is running" if method == "GET" else ""))
        version = [int(part) for part in self.served.ask("GET", "/api/version")[2]["version"].split(".")]
        self.assertGreaterEqual(version, [0, 6, 4])
        tags = {model["name"]: model for model in self.served.ask("GET", "/api/tags")[2]["models"]}
        self.assertEqual(len({model["digest"] for model in tags.values()}), len(tags))
        for model in tags.values():
            self.assertRegex(model["digest"], "^[0-9a-f]{64}$")
            self.assertGreater(model["size"], 0)
        self.assertEqual(tags["storyteller"]["details"]["quantization_level"], "Q4_K")
        self.assertEqual(self.served.ask("GET", "/api/ps")[2]["models"][0]["digest"], tags["storyteller"]["digest"])
        shown = self.good("/api/show", {"model": "storyteller"})
        self.assertEqual(shown["capabilities"], ["completion", "tools"])
        self.assertEqual((shown["model_info"]["llama.context_length"], shown["details"]["family"]), (1024, "llama"))
        if EMBEDDING_MODEL:  # it need not be loaded for that
            self.assertEqual(self.good("/api/show", {"model": "vectors"})["capabilities"], ["embedding"])
            self.assertEqual(self.good("/api/embed", {"model": "vectors", "input": []})["embeddings"], [])
            self.assertEqual(self.good("/api/embeddings", {"model": "vectors", "prompt": ""})["embedding"], [])

    def test_models_have_anthropics_shape_for_its_clients(self):
        listed = self.served.ask("GET", "/v1/models", anthropic_version="2023-06-01")[2]
        self.assertEqual((listed["first_id"], listed["has_more"]), ("storyteller", False))
        one = self.served.ask("GET", "/v1/models/storyteller", anthropic_version="2023-06-01")[2]
        self.assertEqual((listed["data"][0], one["type"], one["display_name"]), (one, "model", "storyteller"))
        self.assertRegex(one["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(self.served.ask("GET", "/models")[2]["object"], "list")


class Load(ServerCase):
    def socket(self):
        made = socket.create_connection(("127.0.0.1", self.served.port), timeout=30)
        self.addCleanup(made.close)
        return made

    def busy(self):
        slot = self.served.ask("GET", "/slots")[2][0]
        return slot["requests"]

    def wait_until_idle(self):
        end = time.monotonic() + 20
        while self.busy() and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual(self.busy(), 0)

    def start_long(self, **fields):
        """A generation that goes on for long, and its connection."""
        connection = self.served.connect()
        connection.request("POST", TEXT, json.dumps({"prompt": "The fox", "ignore_eos": True, **fields}))
        return connection

    def test_who_leaves_is_cancelled(self):
        for fields in ({"stream": True}, {}):
            connection = self.start_long(**fields)
            while not self.busy():
                time.sleep(0.01)
            connection.close()
            self.wait_until_idle()

    def test_a_full_queue_is_429(self):
        connections = [self.start_long() for _ in range(12)]
        while self.busy() < 12:
            time.sleep(0.01)
        status, fields, _ = self.served.post(TEXT, {"prompt": "x"})
        self.assertEqual((status, fields["Retry-After"]), (429, "1"))
        for connection in connections:
            connection.close()  # cancels
        self.wait_until_idle()

    def test_a_higher_tier_takes_the_slot_of_a_lower_one(self):
        connections = [self.start_long(service_tier="flex") for _ in range(3)]
        while self.busy() < 3:
            time.sleep(0.01)
        # The fourth of --parallel, which makes room once it runs.
        youngest = self.start_long(service_tier="flex", max_tokens=100, stream=True).getresponse()
        self.assertTrue(youngest.readline().startswith(b"data: "))
        self.good(TEXT, {"prompt": "Once", "max_tokens": 2, "service_tier": "priority"})
        self.assertEqual(self.busy(), 4, "none of them has ended")
        self.assertTrue(youngest.read().endswith(b"data: [DONE]\n\n"))
        for connection in connections:
            connection.close()
        self.wait_until_idle()
        page = self.served.ask("GET", "/metrics")[2]
        self.assertRegex(page, 'vllm:num_preemptions_total{model_name="storyteller"} [1-9]')
        self.refused(TEXT, {"prompt": "x", "service_tier": "gold"})

    def test_hostile_clients_beside_a_good_one(self):
        idle = [self.socket() for _ in range(200)]
        half = self.socket()
        half.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x")
        slow = self.socket()
        slow.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        cases = ((b"NONSENSE\r\n\r\n", b"400"), (b"GET / HTTP/3\r\n\r\n", b"505"),
                 (b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", b"413"),
                 (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
                 (b"GET / HTTP/1.1\r\nX: " + b"y" * 40000 + b"\r\n\r\n", b"431"),
                 (b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"403"),
                 (b"GET /health HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", b"403"))
        for sent, status in cases:
            made = self.socket()
            made.sendall(sent)
            self.assertEqual(made.recv(12)[9:], status, sent[:60])
        self.good(TEXT, {"prompt": "Once", "max_tokens": 3})
        chunked = self.socket()
        chunked.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                        b"6\r\n{\"cont\r\n10\r\nent\": \"The fox\"}\r\n0\r\n\r\n")
        self.assertEqual(chunked.recv(12)[9:], b"200")
        for late in (half, slow):
            self.assertEqual(late.recv(12)[9:], b"408")
        for made in idle:
            made.close()

    def test_a_connection_serves_many_requests(self):
        connection = self.served.connect()
        for _ in range(3):
            connection.request("POST", "/tokenize", json.dumps({"content": "x"}))
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200)
            answer.read()


class Embeddings(ServerCase):
    def setUp(self):
        if not EMBEDDING_MODEL:
            self.skipTest("no --embedding-model")

    def ask_for(self, **fields):
        return self.good("/v1/embeddings", {"model": "vectors", "input": [5, 6, 7], **fields})

    def test_floats_base64_and_fewer_dimensions(self):
        whole = self.ask_for()
        vector = whole["data"][0]["embedding"]
        self.assertEqual((len(vector), whole["usage"]["prompt_tokens"]), (72, 3))
        self.assertAlmostEqual(sum(x * x for x in vector), 1, places=4)
        packed = base64.b64decode(self.ask_for(encoding_format="base64")["data"][0]["embedding"])
        for a, b in zip(struct.unpack("<72f", packed), vector):
            self.assertAlmostEqual(a, b, places=5)
        few = self.ask_for(input=[[5, 6, 7], [8]], dimensions=8)["data"]
        self.assertEqual([(item["index"], len(item["embedding"])) for item in few], [(0, 8), (1, 8)])
        self.assertAlmostEqual(few[0]["embedding"][1] / few[0]["embedding"][0], vector[1] / vector[0], places=3)

    def test_a_text_beyond_the_context_has_its_code(self):
        error = self.refused("/v1/embeddings", {"model": "vectors", "input": [5] * 600})
        self.assertEqual(error["code"], "context_length_exceeded")
        self.assertIn("maximum context length is 512 tokens", error["message"])
        self.good("/api/embed", {"model": "vectors", "input": [5] * 600})

    def test_texts_are_as_their_tokens(self):
        texts = self.ask_for(input=["ab", "aab"])
        ids = self.ask_for(input=[[7], [5, 7]])
        self.assertEqual((texts["data"], texts["usage"]), (ids["data"], ids["usage"]))
        ollama = self.good("/api/embed", {"model": "vectors", "input": "aab"})
        self.assertEqual((ollama["embeddings"], ollama["prompt_eval_count"]), ([ids["data"][1]["embedding"]], 2))
        old = self.good("/api/embeddings", {"model": "vectors", "prompt": "aab"})
        self.assertEqual(old["embedding"], ollama["embeddings"][0])
        long = {"model": "vectors", "input": "ab" * 600}
        self.assertEqual(self.good("/api/embed", long)["prompt_eval_count"], 512)
        self.assertIn("512", self.refused("/v1/embeddings", long)["message"])
        self.assertEqual(self.good("/api/show", {"model": "vectors"})["capabilities"], ["embedding"])

    def test_what_cannot_be_embedded_is_refused(self):
        for fields in ({"dimensions": 73}, {"dimensions": 0}, {"input": []}, {"input": [[]]}, {"input": [1.5]},
                       {"input": [99999]}, {"encoding_format": "f16"}):
            self.refused("/v1/embeddings", {"model": "vectors", "input": [5], **fields})
        self.assertIn("no embeddings", self.refused("/v1/embeddings", {"model": "storyteller", "input": [5]})["message"])
        self.assertIn("embeddings", self.refused(TEXT, {"model": "vectors", "prompt": [5]})["message"])


class Rerank(ServerCase):
    BODY = {"model": "scores", "query": "Who lives in the tree?",
            "documents": ["The fox sleeps.", {"text": "The crow lives in the tree."}, "A stone."]}

    def setUp(self):
        if not SCORING_MODEL:
            self.skipTest("no --scoring-model")

    def test_the_best_come_first(self):
        whole = self.good("/v1/rerank", self.BODY)["results"]
        scores = [result["relevance_score"] for result in whole]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertEqual(sorted(result["index"] for result in whole), [0, 1, 2])
        usage = self.good("/rerank", self.BODY)["usage"]
        self.assertGreater(usage["prompt_tokens"], 9)
        self.assertEqual(usage["prompt_tokens"], usage["total_tokens"])
        best = self.good("/v1/rerank", {**self.BODY, "top_n": 1, "return_documents": True})["results"]
        texts = ["The fox sleeps.", "The crow lives in the tree.", "A stone."]
        self.assertEqual(best, [{**whole[0], "document": {"text": texts[whole[0]["index"]]}}])

    def test_what_cannot_be_scored_is_refused(self):
        for fields in ({"query": 1}, {"documents": []}, {"documents": [1]}, {"documents": [{"text": None}]}, {"top_n": 0},
                       {"model": "storyteller"}):
            self.refused("/v1/rerank", {**self.BODY, **fields})


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
        served = Served(DOPPLER, *flags, "--dry-breaker", "x", "--logit-bias", "7:-2", "--stop", "end", "--ignore-eos",
                        "--when-full", "slide", "--json-blanks")
        settings = served.ask("GET", "/props")[2]["default_generation_settings"]
        served.process.kill()
        served.end()
        others = {"logit_bias": {"7": -2.0}, "stop": ["end"], "ignore_eos": True, "when_full": "slide", "json_blanks": True}
        wanted = {**{name: given.get(flag, 3) for flag, name in numbers.items()}, **others}
        self.assertIn("x", settings.pop("dry_sequence_breakers"))
        self.assertEqual(settings, wanted)

    def test_they_act_and_yield(self):
        served = Served(DOPPLER, "--ctx", "256", "--parallel", "2", "--seed", "42", "--min-tokens", "3", "--max-tokens", "12",
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


class Ends(unittest.TestCase):
    def test_a_batch_goes_on_after_a_kill(self):
        with tempfile.TemporaryDirectory() as folder:
            flags = (*FLAGS, "--files", os.path.join(folder, "files"))
            served = Served(DOPPLER, *flags)
            batch = begin_batch(served, upload(served, completion_lines(6, max_tokens=30, ignore_eos=True)))
            batch_until(served, batch, lambda now: now["request_counts"]["completed"] > 0)
            served.process.kill()
            served.end()
            served = Served(DOPPLER, *flags)
            done = batch_until(served, batch, lambda now: now["status"] == "completed")
            self.assertEqual(set(file_lines(served, done["output_file_id"])), set("012345"))
            served.end()

    def test_answers_under_way_are_told_before_the_end(self):
        served = Served(DOPPLER, *FLAGS, "--api-key", KEY)
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


if __name__ == "__main__":
    arguments = sys.argv[1:]

    def path_of(flag, otherwise):
        if flag not in arguments:
            return otherwise
        at = arguments.index(flag)
        path = os.path.abspath(arguments[at + 1])
        del arguments[at:at + 2]
        return path

    DOPPLER = path_of("--doppler", DOPPLER)
    EMBEDDING_MODEL, SCORING_MODEL = path_of("--embedding-model", ""), path_of("--scoring-model", "")
    unittest.main(argv=[sys.argv[0], *arguments])
