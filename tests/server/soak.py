"""Many requests of a random mix to one `doppler serve`: memory, open files, threads and objects of the GPU must not
grow. Not part of the usual tests: 24,000 requests take hours without a GPU.
  python3 soak.py --doppler PROGRAM [--requests 24000] [--clients 16] [--seconds N] [--seed 1] [--save FILE]
Growth is told between the second fifth of the requests and the last: the first one fills what is bounded (kept answers,
compiled grammars, blocks of prefixes). Every answer's status is the one its request should have. Open files are told
apart: there are as many connections after the requests as before. The driver's own files may still rise a little (an
NVIDIA driver opens its device up to 14 times more in the first half of a run). Ours may not rise."""

import argparse
import http.client
import json
import random
import statistics
import sys
import threading
import time

from figures import add_arguments, finish, metric, open_files, percentile, process_figures, wait_until_ready
from served import Served

# The host's cache is so small that it is full before growth is told.
FLAGS = ("--ctx", "512", "--parallel", "16", "--any-name", "--cache-host", "4M")
WORDS = "the fox and crow saw a piece of cheese in tree old king had three sons went forest".split()
MOST_GROWTH_MIB = 16  # allocators keep pages that were in use at the same time
MOST_DRIVER_FILES = 4
SCHEMA = {"type": "object", "properties": {"animal": {"enum": ["fox", "crow"]}, "legs": {"enum": [2, 4]}},
          "required": ["animal", "legs"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "legs", "parameters": SCHEMA}}]


def words(rng, most=20):
    return " ".join(rng.choices(WORDS, k=rng.randint(1, most)))


def chat(rng, **fields):
    return {"messages": [{"role": "user", "content": words(rng)}], "max_tokens": rng.randint(1, 8), **fields}


def whole_chat(rng, client):
    client.ask("/v1/chat/completions", chat(rng, temperature=rng.choice([0, 1]), n=rng.randint(1, 3)))


def streamed_chat(rng, client):
    client.ask("/v1/chat/completions", chat(rng, stream=True, stop=[" the"], stream_options={"include_usage": True}))


def probabilities(rng, client):
    client.ask("/v1/chat/completions", chat(rng, logprobs=True, top_logprobs=5))


def samplers(rng, client):
    client.ask("/v1/completions", {"prompt": words(rng), "max_tokens": 6, "dry_multiplier": 0.8, "xtc_probability": 0.5,
                                   "mirostat_tau": 5, "repeat_penalty": 1.1, "logit_bias": {"300": 2}})


def completion(rng, client):
    client.ask("/v1/completions", {"prompt": [words(rng), words(rng)], "max_tokens": 4, "echo": True})


def long_prompt(rng, client):
    client.ask("/v1/completions", {"prompt": "The fox " + words(rng, 80), "max_tokens": 2})


def schema(rng, client):
    fields = {f"f{rng.randint(0, 200)}": {"enum": ["a", "b"]}}  # more schemas than are remembered
    form = {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": fields}}}
    client.ask("/v1/chat/completions", {**chat(rng, response_format=form), "max_tokens": 30})


def forced_call(rng, client):
    client.ask("/v1/chat/completions", {**chat(rng, tools=TOOLS, tool_choice="required"), "max_tokens": 40})


def responses(rng, client):
    answer = client.ask("/v1/responses", {"input": words(rng), "max_output_tokens": 4})
    client.ask("/v1/responses", {"input": "And then?", "previous_response_id": json.loads(answer)["id"],
                                 "max_output_tokens": 3, "stream": rng.random() < 0.5})


def messages(rng, client):
    client.ask("/v1/messages", {"model": "x", "max_tokens": 4, "stream": rng.random() < 0.5,
                                "messages": [{"role": "user", "content": words(rng)}]})


def ollama(rng, client):
    client.ask("/api/chat", {"messages": [{"role": "user", "content": words(rng)}], "options": {"num_predict": 4}})


def tokens(rng, client):
    answer = client.ask("/tokenize", {"content": words(rng, 200)})
    client.ask("/detokenize", {"tokens": json.loads(answer)["tokens"]})


def state(rng, client):
    for path in ("/health", "/v1/models", "/slots", "/metrics", "/props"):
        client.ask(path)


def refused(rng, client):
    client.ask("/v1/chat/completions", chat(rng, temperature="hot"), status=400)
    client.ask("/v1/chat/completions", "{", status=400)
    client.ask("/v1/embeddings", {"input": "x"}, status=400)
    client.ask("/nothing", {}, status=404)


def leaves(rng, client):
    connection = client.served.connect()
    connection.request("POST", "/v1/completions", json.dumps({"prompt": words(rng), "ignore_eos": True,
                                                              "stream": rng.random() < 0.5}))
    time.sleep(rng.uniform(0, 0.5))
    connection.close()
    client.count += 1


def batch(rng, client):
    lines = "\n".join(json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions",
                                  "body": {"prompt": words(rng), "max_tokens": 2}}) for i in range(3))
    form = (f'--B\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--B\r\nContent-Disposition: form-data; '
            f'name="file"; filename="a"\r\n\r\n{lines}\r\n--B--\r\n')
    file = json.loads(client.ask("/v1/files", form, kind="multipart/form-data; boundary=B"))["id"]
    made = json.loads(client.ask("/v1/batches", {"input_file_id": file, "endpoint": "/v1/completions"}))["id"]
    while (now := json.loads(client.ask("/v1/batches/" + made)))["status"] not in ("completed", "failed"):
        time.sleep(0.5)
    assert now["request_counts"]["completed"] == 3, now
    client.ask(f"/v1/files/{now['output_file_id']}/content")
    for used in (file, now["output_file_id"]):
        client.ask("/v1/files/" + used, method="DELETE")


MIX = {whole_chat: 10, streamed_chat: 10, probabilities: 3, samplers: 4, completion: 4, long_prompt: 2, schema: 4, forced_call: 2,
       responses: 5, messages: 4, ollama: 4, tokens: 6, state: 3, refused: 3, leaves: 3, batch: 0.3}


class Client(threading.Thread):
    def __init__(self, served, seed, soak):
        super().__init__()
        self.served, self.rng, self.soak = served, random.Random(seed), soak
        self.count, self.failures, self.seconds = 0, [], []
        self.connection = served.connect()

    def ask(self, path, body=None, status=200, method=None, kind="application/json"):
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        begun = time.time()
        self.connection.request(method or ("GET" if body is None else "POST"), path, data, {"Content-Type": kind})
        answer = self.connection.getresponse()
        text = answer.read().decode()
        self.seconds.append(time.time() - begun)
        self.count += 1
        assert answer.status == status, f"{path}: {answer.status}, not {status}: {text[:200]}"
        assert '"error":{' not in text or status != 200 or "/batches" in path, f"{path}: {text[:200]}"
        return text

    def run(self):
        while not self.soak.is_done():
            what = self.rng.choices(list(MIX), list(MIX.values()))[0]
            try:
                what(self.rng, self)
            except (OSError, http.client.HTTPException, AssertionError, ValueError, KeyError) as error:
                self.failures.append(f"{what.__name__}: {type(error).__name__}: {error}"[:300])
                self.connection.close()


class Soak:
    def __init__(self, served, arguments):
        self.served, self.arguments, self.samples = served, arguments, []
        self.begun = time.time()
        self.open = [open_files(served.process.pid)]  # before, under load, and after it
        self.clients = [Client(served, arguments.seed * 1000 + i, self) for i in range(arguments.clients)]

    def count(self):
        return sum(client.count for client in self.clients)

    def is_done(self):
        late = self.arguments.seconds and time.time() - self.begun > self.arguments.seconds
        return late or self.count() >= self.arguments.requests

    def run(self):
        for client in self.clients:
            client.start()
        while any(client.is_alive() for client in self.clients):
            page = self.served.ask("GET", "/metrics")[2]
            self.samples.append({"requests": self.count(), "objects": metric(page, "doppler:gpu_objects_created"),
                                 **process_figures(self.served.process.pid)})
            if len(self.samples) == 5:
                self.open.append(open_files(self.served.process.pid))
            time.sleep(1)

    def fifth(self, number, key):
        size = max(1, len(self.samples) // 5)
        return statistics.median(sample[key] for sample in self.samples[number * size:(number + 1) * size])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--requests", type=int, default=24000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=0, help="end then, whatever is done (0: no limit)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    served = Served(arguments.doppler, *FLAGS)
    wait_until_ready(served)
    soak = Soak(served, arguments)
    soak.run()
    failures = [failure for client in soak.clients for failure in client.failures]
    seconds = [value for client in soak.clients for value in client.seconds]
    while served.ask("GET", "/slots")[2][0]["requests"]:
        time.sleep(0.1)
    slot = served.ask("GET", "/slots")[2][0]
    for client in soak.clients:
        client.connection.close()
    time.sleep(2)
    soak.open.append(open_files(served.process.pid))
    growth = {key: round(soak.fifth(4, key) - soak.fifth(1, key), 1)
              for key in ("rss_mib", "threads", "files", "sockets", "driver_files")}
    objects = soak.samples[-1]["objects"]
    connections = [files.get("socket", 0) for files in soak.open]
    passed = (not failures and growth["rss_mib"] <= MOST_GROWTH_MIB and growth["threads"] <= 0 and growth["files"] <= 0
              and growth["driver_files"] <= MOST_DRIVER_FILES and connections[-1] <= connections[0]
              and objects == 0 and slot["cache_tokens_free"] == slot["cache_tokens"])
    step = max(1, len(soak.samples) // 20)
    figures = {"requests": soak.count(), "run_seconds": round(time.time() - soak.begun, 1), "failures": len(failures),
               "first_failures": failures[:10], "growth": growth, "gpu_objects_created": objects,
               "seconds_p50": percentile(seconds, 0.5), "seconds_p99": percentile(seconds, 0.99),
               "open_files": soak.open, "cache_tokens_free": slot["cache_tokens_free"], "cache_tokens": slot["cache_tokens"],
               "samples": soak.samples[::step]}
    return finish(arguments, "soak", served, passed, figures)


if __name__ == "__main__":
    sys.exit(main())
