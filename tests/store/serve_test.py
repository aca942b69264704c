"""`doppler serve-models` and `doppler web`: ranges, conditions, CORS, HEAD, escapes, limits, an orderly end, and pulls
from it."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import helpers
from helpers import StoreCase, model_bytes

MODEL = "models/storyteller.gguf"


class ServeCase(StoreCase):
    flags = ()

    def command(self):
        return "serve-models", self.folder

    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.home, "served")
        os.makedirs(os.path.join(self.folder, "sub"))
        self.data = model_bytes(1_000_000)
        for name, data in (("tiny.gguf", self.data), ("sub/manifest.json", b"{}"), (".secret", b"s"), ("x.part", b"p"),
                           ("empty.bin", b"")):
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(data)
        with open(os.path.join(self.home, "outside.txt"), "w", encoding="utf-8") as file:
            file.write("outside")
        os.symlink(os.path.join(self.home, "outside.txt"), os.path.join(self.folder, "escape.txt"))
        os.symlink(self.home, os.path.join(self.folder, "up"))
        os.symlink("tiny.gguf", os.path.join(self.folder, "link.gguf"))
        self.process = self.start(*self.command(), "--port", "0", "--json", *self.flags)
        self.addCleanup(self.end)
        self.port = json.loads(self.process.stdout.readline())["port"]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.putrequest(method, path, skip_accept_encoding=True)
        for key, value in headers.items():
            connection.putheader(key.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), body


class Page(ServeCase):
    def command(self):
        with open(os.path.join(self.folder, "index.html"), "w", encoding="utf-8") as file:
            file.write("<!doctype html>")
        return "web", "--site", self.folder

    def test_the_page_is_at_the_root_and_its_own_origin_alone_reads(self):
        status, fields, body = self.ask("/")
        self.assertEqual((status, fields["Content-Type"], body), (200, "text/html; charset=utf-8", b"<!doctype html>"))
        self.assertNotIn("Access-Control-Allow-Origin", fields)
        self.assertEqual(fields["Cross-Origin-Resource-Policy"], "same-origin")
        self.assertEqual(self.ask("/?a=b")[0], 200)
        self.assertEqual(self.ask("/sub/")[0], 404)
        self.assertEqual(self.ask("/tiny.gguf", Range="bytes=0-3")[::2], (206, b"GGUF"))

    def test_a_compressed_copy_goes_to_who_takes_it(self):
        for name, data in (("a.mjs", b"let a;"), ("a.mjs.gz", b"packed")):
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(data)
        status, fields, body = self.ask("/a.mjs", **{"Accept-Encoding": "br, gzip;q=0.8"})
        self.assertEqual((status, fields["Content-Encoding"], fields["Vary"], body), (200, "gzip", "Accept-Encoding", b"packed"))
        self.assertEqual(fields["Content-Type"], "text/javascript; charset=utf-8")
        for asked in ({}, {"Accept-Encoding": "gzip;q=0"}, {"Accept-Encoding": "gzip", "Range": "bytes=0-5"}):
            status, fields, body = self.ask("/a.mjs", **asked)
            self.assertEqual((body, fields.get("Content-Encoding")), (b"let a;", None))
        self.assertEqual(self.ask("/tiny.gguf", **{"Accept-Encoding": "gzip"})[1].get("Content-Encoding"), None)

    def test_a_folder_without_a_page_is_refused(self):
        self.fail_with("There is no index.html in %s" % self.home, "web", "--site", self.home)


class Answers(ServeCase):
    def test_whole_files_and_their_fields(self):
        status, fields, body = self.ask("/tiny.gguf")
        self.assertEqual((status, body), (200, self.data))
        for key, value in (("Content-Type", "application/octet-stream"), ("Accept-Ranges", "bytes"),
                           ("Access-Control-Allow-Origin", "*"), ("Cache-Control", "no-cache"),
                           ("X-Content-Type-Options", "nosniff")):
            self.assertEqual(fields[key], value)
        self.assertIn("Content-Range", fields["Access-Control-Expose-Headers"])
        self.assertEqual(self.ask("/sub/manifest.json")[1]["Content-Type"], "application/json")
        self.assertEqual(self.ask("/link.gguf")[2], self.data)
        self.assertEqual(self.ask("/empty.bin")[::2], (200, b""))

    def test_head(self):
        status, fields, body = self.ask("/tiny.gguf", "HEAD")
        self.assertEqual((status, fields["Content-Length"], body), (200, "1000000", b""))
        status, fields, body = self.ask("/tiny.gguf", "HEAD", Range="bytes=0-9")
        self.assertEqual((status, fields["Content-Length"], body), (206, "10", b""))

    def test_ranges(self):
        size = len(self.data)
        rows = [("bytes=0-99", 206, 0, 100), ("bytes=999999-", 206, size - 1, size), ("bytes=-100", 206, size - 100, size),
                ("bytes=-5000000", 206, 0, size), ("bytes=10-5000000", 206, 10, size), ("Bytes = 0-1", 200, 0, size),
                ("BYTES=5-6", 206, 5, 7), ("bytes=0-1,5-6", 200, 0, size), ("lines=0-1", 200, 0, size),
                ("bytes=9-5", 200, 0, size), ("bytes=a-b", 200, 0, size), ("bytes=--5", 200, 0, size),
                ("bytes=-", 200, 0, size), ("bytes=99999999999999999999-", 200, 0, size), ("", 200, 0, size)]
        for value, status, first, end in rows:
            with self.subTest(value):
                got, fields, body = self.ask("/tiny.gguf", Range=value)
                self.assertEqual((got, body == self.data[first:end]), (status, True))
                if status == 206:
                    self.assertEqual(fields["Content-Range"], "bytes %d-%d/%d" % (first, end - 1, size))
        for value in ("bytes=1000000-", "bytes=5000000-6000000", "bytes=-0"):
            status, fields, _ = self.ask("/tiny.gguf", Range=value)
            self.assertEqual((status, fields["Content-Range"]), (416, "bytes */1000000"))
        self.assertEqual(self.ask("/empty.bin", Range="bytes=0-0")[0], 416)

    def test_conditions(self):
        _, fields, _ = self.ask("/tiny.gguf")
        tag, date = fields["ETag"], fields["Last-Modified"]
        self.assertEqual(self.ask("/tiny.gguf", If_None_Match=tag)[0::2], (304, b""))
        self.assertEqual(self.ask("/tiny.gguf", If_None_Match='"a", W/' + tag)[0], 304)
        self.assertEqual(self.ask("/tiny.gguf", If_None_Match='"a"')[0], 200)
        self.assertEqual(self.ask("/tiny.gguf", If_Modified_Since=date)[0], 304)
        self.assertEqual(self.ask("/tiny.gguf", If_Modified_Since="Thu, 01 Jan 1970 00:00:00 GMT")[0], 200)
        self.assertEqual(self.ask("/tiny.gguf", If_Range=tag, Range="bytes=0-1")[0], 206)
        self.assertEqual(self.ask("/tiny.gguf", If_Range=date, Range="bytes=0-1")[0], 206)
        self.assertEqual(self.ask("/tiny.gguf", If_Range='"other"', Range="bytes=0-1")[0], 200)
        with open(os.path.join(self.folder, "tiny.gguf"), "ab") as file:
            file.write(b"more")
        self.assertNotEqual(self.ask("/tiny.gguf")[1]["ETag"], tag)

    def test_preflight_and_other_methods(self):
        status, fields, _ = self.ask("/tiny.gguf", "OPTIONS", Origin="https://example.org",
                                     Access_Control_Request_Method="GET", Access_Control_Request_Headers="range")
        self.assertEqual(status, 204)
        self.assertIn("Range", fields["Access-Control-Allow-Headers"].split(", "))
        for method in ("POST", "PUT", "DELETE", "TRACE"):
            self.assertIn(self.ask("/tiny.gguf", method)[0], (405, 501))

    def test_nothing_outside_hidden_or_unfinished(self):
        for path in ("/", "/sub", "/sub/", "/nothing", "/.secret", "/x.part", "/escape.txt", "/up/outside.txt",
                     "/../outside.txt", "/%2e%2e/outside.txt", "/sub/../../outside.txt", "/sub/%2e%2e%2f%2e%2e/outside.txt",
                     "/..%5coutside.txt", "//etc/passwd", "/tiny.gguf%00.txt", "/%", "/%zz", "/tiny.gguf/", "/./tiny.gguf",
                     "/" + "a" * 5000):
            with self.subTest(path[:60]):
                status, _, body = self.ask(path)
                self.assertIn(status, (400, 404, 414))
                self.assertNotIn(b"outside", body.replace(b"outside.txt", b""))

    def test_a_folder_that_becomes_a_link_leads_nowhere(self):
        shutil.rmtree(os.path.join(self.folder, "sub"))
        os.symlink("/etc", os.path.join(self.folder, "sub"))
        self.assertEqual(self.ask("/sub/passwd")[0], 404)

    def test_requests_that_are_none(self):
        for text in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET /tiny.gguf HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00" * 20,
                     b"GET /tiny.gguf HTTP/1.1\r\nHost: a\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
                     b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"):
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
                try:
                    connection.sendall(text)
                    connection.shutdown(socket.SHUT_WR)
                    answer = connection.recv(65536)
                except OSError:
                    answer = b""
                self.assertNotIn(b" 200 ", answer[:20])
        self.assertEqual(self.ask("/tiny.gguf")[0], 200)

    def test_readers_side_by_side(self):
        wrong = []

        def read(i):
            status, _, body = self.ask("/tiny.gguf", Range="bytes=%d-%d" % (i * 1000, i * 1000 + 50_000))
            if status != 206 or body != self.data[i * 1000:i * 1000 + 50_001]:
                wrong.append(i)
        threads = [threading.Thread(target=read, args=(i,)) for i in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Ends(ServeCase):
    def test_ctrl_c_ends_it_and_answers_under_way_come_whole(self):
        big = os.path.join(self.folder, "big.gguf")
        with open(big, "wb") as file:
            file.truncate(64 << 20)
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(b"GET /big.gguf HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            count = len(connection.recv(1000))
            self.process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            with self.assertRaises(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=2)
            while some := connection.recv(1 << 20):
                count += len(some)
        self.assertGreater(count, 64 << 20)
        self.assertEqual(self.process.wait(timeout=10), 0)

    def test_a_stuck_reader_does_not_hold_it_for_ever(self):
        with open(os.path.join(self.folder, "big.gguf"), "wb") as file:
            file.truncate(64 << 20)
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(b"GET /big.gguf HTTP/1.1\r\nHost: a\r\n\r\n")
            connection.recv(1000)
            self.process.send_signal(signal.SIGTERM)
            self.assertEqual(self.process.wait(timeout=10), 0)


class Limits(ServeCase):
    flags = ("--connections", "4", "--timeout", "1")

    def test_one_more_takes_the_place_of_the_oldest_idle_one(self):
        held = []
        for _ in range(4):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            connection.request("GET", "/sub/manifest.json")
            self.assertEqual(connection.getresponse().read(), b"{}")
            held.append(connection)
        self.assertEqual(self.ask("/sub/manifest.json")[0], 200)
        self.assertEqual(held[0].sock.recv(10), b"")
        held[3].request("GET", "/sub/manifest.json")
        self.assertEqual(held[3].getresponse().status, 200)
        for connection in held:
            connection.close()

    def test_where_all_are_busy_the_next_one_waits(self):
        with open(os.path.join(self.folder, "big.gguf"), "wb") as file:
            file.truncate(64 << 20)
        held = [socket.create_connection(("127.0.0.1", self.port), timeout=10) for _ in range(4)]
        for connection in held:
            connection.sendall(b"GET /big.gguf HTTP/1.1\r\nHost: a\r\n\r\n")
            connection.recv(1000)
        self.assertEqual(self.ask("/sub/manifest.json")[0], 200)  # when one that takes nothing was closed
        for connection in held:
            connection.close()

    def test_a_request_that_never_ends_is_closed(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(b"GET /tiny.gguf HTTP/1.1\r\n")
            start = time.time()
            connection.recv(1000)
            self.assertLess(time.time() - start, 5)


class SilentSockets(ServeCase):
    flags = ("--timeout", "5")

    def start(self, *arguments):
        return subprocess.Popen(["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", helpers.DOPPLER, *arguments],
                                env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.process.pid, encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_they_lock_nobody_out_and_cost_nothing(self):
        held = [socket.create_connection(("127.0.0.1", self.port), timeout=10) for _ in range(120)]
        self.assertEqual(self.ask("/sub/manifest.json")[0], 200)
        before = self.cpu_seconds()
        time.sleep(1)
        self.assertLess(self.cpu_seconds() - before, 0.3)
        self.assertEqual(self.ask("/sub/manifest.json")[0], 200)
        for connection in held:
            connection.close()
        self.process.send_signal(signal.SIGTERM)
        _, complaints = self.process.communicate()
        self.assertLess(len(complaints), 1000)

    def test_a_slow_sender_has_one_deadline_for_the_whole_head(self):
        start = time.time()
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            with self.assertRaises(OSError):
                while time.time() - start < 20:
                    connection.sendall(b"G")
                    time.sleep(0.5)
        self.assertLess(time.time() - start, 9)


class PullsFromIt(ServeCase):
    def test_pull_list_and_use(self):
        if not os.path.exists(MODEL):
            self.skipTest("the shipped model is not there")
        shutil.copy(MODEL, self.folder)
        self.succeed("pull", "http://127.0.0.1:%d/storyteller.gguf" % self.port)
        self.assertEqual(self.succeed("list", "--json")["models"][0]["name"], "storyteller")
        self.assertTrue(self.succeed("tokenize", "-m", "storyteller", "a fox").strip())

    def test_sentences(self):
        self.fail_with("Cannot listen at 127.0.0.1 port %d: Address already in use" % self.port, "serve-models",
                       self.folder, "--port", str(self.port))
        self.fail_with("Cannot serve .*No such file", "serve-models", self.folder + "/missing")
        self.fail_with("is no folder", "serve-models", os.path.join(self.folder, "tiny.gguf"))


if __name__ == "__main__":
    helpers.main()
