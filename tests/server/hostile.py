"""Good clients of `doppler serve` beside many hostile connections: none of the good ones may fail. Not part of the
usual tests: it takes minutes.
  python3 hostile.py --doppler PROGRAM [--hostile 1000] [--good 32] [--seconds 120] [--save FILE]
Hostile connections come from a process of their own and each misbehaves in a way of HOSTILE, again and again. A good
client asks for short answers, whole and streamed, and checks them; a request that is not answered as it should be is a
failure."""

import argparse
import asyncio
import http.client
import json
import multiprocessing
import random
import resource
import socket
import struct
import sys
import threading
import time

from figures import add_arguments, finish, open_files, percentile, process_figures, wait_until_ready
from served import Served

FLAGS = ("--ctx", "512", "--parallel", "16", "--temp", "0", "--head-timeout", "10", "--body-timeout", "20")
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def request(body, **fields):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    more = "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode()
    return CHAT + more + b"Content-Length: %d\r\n\r\n" % len(data) + data


def long_answer(**fields):
    return request({"messages": [{"role": "user", "content": "The fox"}], "max_tokens": 200, "ignore_eos": True,
                    "user": str(random.random()), **fields})


async def drip(writer, data, seconds):
    for byte in data:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(seconds)


async def idle(_reader, _writer):
    await asyncio.sleep(random.uniform(5, 60))


async def slow_head(_reader, writer):
    await drip(writer, b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 200, 0.3)


async def slow_body(_reader, writer):
    writer.write(CHAT + b"Content-Length: 100000\r\n\r\n")
    await drip(writer, b'{"messages": [' + b" " * 500, 0.3)


async def noise(reader, writer):
    writer.write(random.randbytes(random.randrange(1, 5000)))
    await reader.read(100)


async def tls(reader, writer):
    writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + random.randbytes(500))
    await reader.read(100)


async def long_head(reader, writer):
    writer.write(b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000)
    await reader.read(100)


async def two_lengths(reader, writer):
    writer.write(b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    await reader.read(100)


async def huge_body(reader, writer):
    writer.write(CHAT + b"Content-Length: 99999999999\r\n\r\n" + b"x" * 100_000)
    await reader.read(100)


async def torn_chunks(reader, writer):
    writer.write(CHAT + b"Transfer-Encoding: chunked\r\n\r\nfff\r\n{")
    await asyncio.sleep(1)
    writer.write(b"zz\r\n")
    await reader.read(100)


async def deep_json(reader, writer):
    writer.write(request(b"[" * 500_000))
    await reader.read(100)


async def wrong_types(reader, writer):
    writer.write(request({"messages": {"role": []}, "temperature": [], "tools": "x"}))
    await reader.read(100)


async def costly_schema(reader, writer):
    pattern = "(" + "|".join("a{%d}b*" % n for n in range(1, 200)) + "){1,50}"
    schema = {"type": "object", "properties": {f"p{i}": {"type": "string", "pattern": pattern} for i in range(50)}}
    writer.write(request({"messages": [{"role": "user", "content": "x"}], "max_tokens": 4,
                          "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}))
    await reader.read(100)


async def torn_upload(_reader, writer):
    writer.write(b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=B\r\n"
                 b"Content-Length: 100000\r\n\r\n--B\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n")


async def pipelined(reader, writer):
    writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500)
    await asyncio.sleep(3)
    await reader.read(1000)


async def leaves(_reader, writer):
    writer.write(long_answer())
    await asyncio.sleep(random.uniform(0, 2))


async def reads_nothing(_reader, writer):
    writer.write(long_answer(stream=True, logprobs=True, top_logprobs=20))
    await asyncio.sleep(20)


async def resets(_reader, writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.write(CHAT + b"Content-Length: 10\r\n\r\n{")


async def other_host(reader, writer):
    writer.write(b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n")
    await reader.read(100)


# Each with its part of the connections. Those that make the model work are few: whoever asks for answers shares it.
HOSTILE = {idle: 8, slow_head: 8, slow_body: 8, noise: 3, tls: 2, long_head: 2, two_lengths: 2, huge_body: 2, torn_chunks: 2,
           deep_json: 1, wrong_types: 2, costly_schema: 1, torn_upload: 3, pipelined: 1, leaves: 1, reads_nothing: 1,
           resets: 2, other_host: 2}


async def misbehave(port, way, end, count):
    while time.time() < end.value:
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 30)
        except (OSError, asyncio.TimeoutError):
            await asyncio.sleep(1)
            continue
        with count.get_lock():
            count.value += 1
        try:
            await asyncio.wait_for(way(reader, writer), 90)
        except (OSError, asyncio.TimeoutError):
            pass
        writer.close()
        await asyncio.sleep(random.uniform(0.1, 1))


def hostile_process(port, number, end, count):
    async def all_of_them():
        ways = random.choices(list(HOSTILE), list(HOSTILE.values()), k=number)
        await asyncio.gather(*(misbehave(port, way, end, count) for way in ways))
    raise_limit()
    asyncio.run(all_of_them())


def raise_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Good(threading.Thread):
    """One good client: a request after the other, each checked."""

    def __init__(self, served, number, end):
        super().__init__()
        self.served, self.number, self.end = served, number, end
        self.seconds, self.failures = [], []

    def run(self):
        asked = 0
        while time.time() < self.end.value or asked == 0:
            asked += 1
            begun = time.time()
            try:
                self.ask(is_streamed=asked % 2 == 0)
                self.seconds.append(time.time() - begun)
            except (OSError, http.client.HTTPException, AssertionError, ValueError, KeyError) as error:
                self.failures.append(f"{type(error).__name__}: {error}"[:200])

    def ask(self, is_streamed):
        body = {"messages": [{"role": "user", "content": f"The fox {self.number}"}], "max_tokens": 4, "stream": is_streamed,
                "ignore_eos": True, "user": f"good {self.number}"}
        connection = self.served.connect()
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 200, f"{answer.status} {text[:100]}"
        if is_streamed:
            assert text.endswith("data: [DONE]\n\n") and '"finish_reason":"length"' in text, text[-200:]
        else:
            assert json.loads(text)["usage"]["completion_tokens"] == 4, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--hostile", type=int, default=1000)
    parser.add_argument("--good", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=120)
    arguments = parser.parse_args()
    raise_limit()
    served = Served(arguments.doppler, *FLAGS)
    wait_until_ready(served)
    before = process_figures(served.process.pid)
    end = multiprocessing.Value("d", time.time() + arguments.seconds)
    count = multiprocessing.Value("i", 0)
    hostile = multiprocessing.Process(target=hostile_process, args=(served.port, arguments.hostile, end, count))
    hostile.start()
    time.sleep(min(10, arguments.seconds / 4))  # the hostile ones are there first
    clients = [Good(served, number, end) for number in range(arguments.good)]
    for client in clients:
        client.start()
    health, most_files = [], 0
    while time.time() < end.value:
        begun = time.time()
        try:
            served.ask("GET", "/health")
            health.append(time.time() - begun)
        except OSError as error:
            clients[0].failures.append(f"/health: {error}")
        most_files = max(most_files, sum(open_files(served.process.pid).values()))
        time.sleep(0.5)
    for client in clients:
        client.join()
    hostile.join()
    failures = [failure for client in clients for failure in client.failures]
    seconds = [value for client in clients for value in client.seconds]
    least = min(len(client.seconds) for client in clients)
    figures = {"hostile_connections_made": count.value, "good_requests": len(seconds), "least_of_a_client": least,
               "failures": len(failures), "first_failures": failures[:10],
               "seconds_p50": percentile(seconds, 0.5), "seconds_p99": percentile(seconds, 0.99),
               "health_seconds_p50": percentile(health, 0.5), "health_seconds_p99": percentile(health, 0.99),
               "most_open_files": most_files, "before": before, "after": process_figures(served.process.pid)}
    return finish(arguments, "hostile", served, not failures and least > 0, figures)


if __name__ == "__main__":
    sys.exit(main())
