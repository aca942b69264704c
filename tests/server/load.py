"""One `doppler serve` under the load of 1, 8, 32 and 64 clients that stream answers at the same time: all tokens
together by the second, time to the first token, the longest gap within an answer. Not part of the usual tests: it
measures a GPU.
  python3 load.py --doppler PROGRAM --model FILE [--clients 1,8,32,64] [--prompt 512] [--tokens 256] [--rounds 2]
  [--save FILE]
All clients of a round ask at once, each with a prompt of its own. `tokens_per_second` is what `bench --streams` calls
so: counted from the moment that every client has a token until the first answer ends. `all_tokens_per_second` counts
the round's whole time, prompts included. The first round of each number of clients warms up."""

import argparse
import json
import random
import re
import socket
import statistics
import sys
import threading
import time

from figures import add_arguments, finish, percentile, wait_until_ready
from served import Served

COUNT = re.compile(rb'"predicted_n":(\d+)')
LONGEST_MATCH = 40  # bytes, of what a read may have cut
LEAST_ID, MOST_ID = 1000, 8000  # tokens that every vocabulary has, and none of them special


class Client(threading.Thread):
    """One streamed answer; `arrivals` are (seconds, tokens of the answer so far)."""

    def __init__(self, served, rng, arguments, together):
        super().__init__()
        self.served, self.together, self.arrivals, self.failure = served, together, [], ""
        body = json.dumps({"prompt": [rng.randint(LEAST_ID, MOST_ID) for _ in range(arguments.prompt)],
                           "max_tokens": arguments.tokens, "temperature": 0, "ignore_eos": True, "stream": True,
                           "timings_per_token": True})
        self.request = (f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                        f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode()

    def run(self):
        try:
            self.ask()
        except OSError as error:
            self.failure = str(error)

    def ask(self):
        with socket.create_connection(("127.0.0.1", self.served.port), timeout=600) as connection:
            self.together.wait()
            self.begun = time.perf_counter()
            connection.sendall(self.request)
            rest, whole = b"", b""
            while data := connection.recv(1 << 16):
                now = time.perf_counter()
                whole = whole or data
                found = COUNT.findall(rest + data)
                if found and (not self.arrivals or int(found[-1]) > self.arrivals[-1][1]):
                    self.arrivals.append((now, int(found[-1])))
                rest = (rest + data)[-LONGEST_MATCH:]
            if not whole.startswith(b"HTTP/1.1 200"):
                self.failure = whole[:300].decode(errors="replace")

    def tokens_until(self, moment):
        return max((count for when, count in self.arrivals if when <= moment), default=0)

    def gaps(self):
        return [later[0] - earlier[0] for earlier, later in zip(self.arrivals, self.arrivals[1:])]


def one_round(served, rng, arguments, count):
    together = threading.Barrier(count)
    clients = [Client(served, rng, arguments, together) for _ in range(count)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    failures = [client.failure or "no token came" for client in clients if client.failure or not client.arrivals]
    if failures:
        return {"failures": failures}
    begin = max(client.arrivals[0][0] for client in clients)
    end = min(client.arrivals[-1][0] for client in clients)
    tokens = sum(client.tokens_until(end) - client.tokens_until(begin) for client in clients)
    whole = max(client.arrivals[-1][0] for client in clients) - min(client.begun for client in clients)
    return {"failures": [], "tokens_per_second": tokens / (end - begin) if end > begin else 0,
            "all_tokens_per_second": sum(client.arrivals[-1][1] for client in clients) / whole,
            "first_token_seconds": [client.arrivals[0][0] - client.begun for client in clients],
            "longest_gap_seconds": max(max(client.gaps(), default=0) for client in clients)}


def measure(served, rng, arguments, count):
    rounds = [one_round(served, rng, arguments, count) for _ in range(arguments.rounds + 1)]
    failures = [failure for done in rounds for failure in done["failures"]]
    if failures:
        return {"clients": count, "failures": len(failures), "first_failures": failures[:3]}
    counted = rounds[1:]
    first = [seconds for done in counted for seconds in done["first_token_seconds"]]
    return {"clients": count, "failures": 0,
            "tokens_per_second": {"median": round(statistics.median(done["tokens_per_second"] for done in counted), 1),
                                  "samples": [round(done["tokens_per_second"], 1) for done in counted]},
            "all_tokens_per_second": round(statistics.median(done["all_tokens_per_second"] for done in counted), 1),
            "first_token_seconds_p50": percentile(first, 0.5), "first_token_seconds_p99": percentile(first, 0.99),
            "longest_gap_seconds": round(max(done["longest_gap_seconds"] for done in counted), 4)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--model", default="models/storyteller.gguf")
    parser.add_argument("--clients", default="1,8,32,64", help="numbers of clients, one after another")
    parser.add_argument("--prompt", type=int, default=512, help="tokens")
    parser.add_argument("--tokens", type=int, default=256, help="of an answer")
    parser.add_argument("--rounds", type=int, default=2, help="counted ones, behind one that warms up")
    arguments = parser.parse_args()
    numbers = [int(number) for number in arguments.clients.split(",")]
    served = Served(arguments.doppler, "--ctx", str(arguments.prompt + arguments.tokens + 1), "--parallel", str(max(numbers)),
                    "--any-name", model=arguments.model)
    wait_until_ready(served)
    rng = random.Random(1)
    results = []
    for count in numbers:
        results.append(measure(served, rng, arguments, count))
        print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    return finish(arguments, "load", served, all(result["failures"] == 0 for result in results), {"results": results})


if __name__ == "__main__":
    sys.exit(main())
