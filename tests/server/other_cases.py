"""Anthropic's and Ollama's APIs, embeddings and scores."""

import base64
import json
import struct

from served_case import GIVEN, TEXT, ServerCase


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
        # Ollama's program asks so.
        self.assertEqual(self.good("/api/show", {"model": "", "name": "storyteller"}), shown)
        if GIVEN.embedding_model:  # it need not be loaded for that
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


class Embeddings(ServerCase):
    def setUp(self):
        if not GIVEN.embedding_model:
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
        if not GIVEN.scoring_model:
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
