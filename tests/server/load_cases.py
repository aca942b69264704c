"""Many clients, and clients that misbehave."""

import json
import socket
import time

from served_case import TEXT, ServerCase


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
