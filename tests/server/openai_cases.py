"""OpenAI's APIs whole and streamed, and errors by name."""

import json

from served_case import CHAT, TEXT, TOOLS, ServerCase, batch_until, begin_batch, chat, completion_lines, file_lines, upload


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
