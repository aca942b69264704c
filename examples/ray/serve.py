"""Replicas of `doppler serve` under one address, with Ray Serve: each replica is a process with a model of its own,
and a router sends a request to the replica that has evaluated the longest beginning of it, unless that one is too busy.
  pip install "ray[serve]"
  python3 serve.py [--replicas 2] [--gpus-each 0] [--port 8000] -- doppler -m MODEL [flags of doppler serve]
Clients see OpenAI's, Anthropic's and Ollama's APIs at http://127.0.0.1:8000, streams included."""

import argparse
import asyncio
import hashlib
import json
import os
import sys

import aiohttp
from ray import serve
from starlette.requests import Request
from starlette.responses import StreamingResponse

from replica import Doppler

PIECE = 512  # characters of a prompt that are compared at a time; some 128 tokens, a few blocks of the cache
MOST_PIECES = 64
MOST_KNOWN = 100_000  # pieces that a router remembers, the newest ones
MOST_AHEAD = 4  # requests by which a replica may be busier than the least busy one and still get another for its prefix


@serve.deployment(max_ongoing_requests=256, health_check_period_s=5)
class Replica:
    """One model in a process of its own."""

    def __init__(self, command):
        self.doppler = Doppler(command)
        self.session = None

    def check_health(self):
        self.doppler.is_ready()  # an error where the process has ended: Ray starts another replica

    async def ask(self, method, path, body, content_type):
        """Yields the status and type of the answer, then its bytes as they come."""
        if self.session is None:
            self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_read=600))
        async with self.session.request(method, self.doppler.url + path, data=body,
                                        headers={"Content-Type": content_type}) as answer:
            yield answer.status, answer.headers.get("Content-Type", "application/json")
            async for piece in answer.content.iter_any():
                yield piece


class Prefixes:
    """The beginnings of prompts that each replica has evaluated."""

    def __init__(self, replicas):
        self.known = {}  # digest of a beginning: replica; the newest last
        self.busy = [0] * replicas

    @staticmethod
    def digests(body):
        """The prompt's beginnings, piece by piece, the shortest first."""
        text = json.dumps([body.get(key) for key in ("model", "tools", "system", "instructions", "messages", "input", "prompt")])
        out, digest = [], hashlib.sha256()
        for at in range(0, min(len(text), PIECE * MOST_PIECES) - PIECE + 1, PIECE):
            digest.update(text[at:at + PIECE].encode())
            out.append(digest.digest()[:16])
        return out

    def choose(self, body):
        least = min(range(len(self.busy)), key=lambda i: self.busy[i])
        digests = self.digests(body)
        chosen = least
        for digest in reversed(digests):
            replica = self.known.get(digest)
            if replica is not None:
                if self.busy[replica] <= self.busy[least] + MOST_AHEAD:
                    chosen = replica
                break
        for digest in digests:
            self.known.pop(digest, None)
            self.known[digest] = chosen
        while len(self.known) > MOST_KNOWN:
            del self.known[next(iter(self.known))]
        return chosen


@serve.deployment(max_ongoing_requests=1024)
class Router:
    def __init__(self, *replicas):
        self.replicas = replicas
        self.prefixes = Prefixes(len(replicas))

    async def __call__(self, request: Request):
        body = await request.body()
        try:
            asked = json.loads(body) if body else {}
        except ValueError:
            asked = {}  # the replica says what is wrong with it
        chosen = self.prefixes.choose(asked if isinstance(asked, dict) else {})
        query = "?" + request.url.query if request.url.query else ""
        self.prefixes.busy[chosen] += 1
        answer = self.replicas[chosen].options(stream=True).ask.remote(
            request.method, request.url.path + query, body, request.headers.get("content-type", "application/json"))
        try:
            status, content_type = await anext(answer)
        except BaseException:
            self.prefixes.busy[chosen] -= 1
            raise

        async def pieces():
            try:
                async for piece in answer:
                    yield piece
            finally:
                self.prefixes.busy[chosen] -= 1
        return StreamingResponse(pieces(), status, {"X-Replica": str(chosen)}, content_type)


def application(command, replicas, gpus_each=0):
    # A deployment each, so that the router may choose; Ray keeps all alive.
    made = [Replica.options(name=f"replica-{i}", ray_actor_options={"num_gpus": gpus_each, "num_cpus": 1}).bind(command)
            for i in range(replicas)]
    return Router.options(ray_actor_options={"num_cpus": 0}).bind(*made)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--gpus-each", type=float, default=0)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))  # for the replicas
    serve.start(http_options={"port": arguments.port})
    serve.run(application(arguments.command, arguments.replicas, arguments.gpus_each))
    print(f"{arguments.replicas} replicas at http://127.0.0.1:{arguments.port} (Ctrl-C ends them)", flush=True)
    try:
        asyncio.run(asyncio.Event().wait())
    except KeyboardInterrupt:
        serve.shutdown()


if __name__ == "__main__":
    sys.exit(main())
