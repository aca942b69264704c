"""`doppler share`, `doppler peers` and `doppler pull` from other machines: several loopback addresses, machines that
lie or stall, kill -9, a source beside them, a whole class at once."""

import hashlib
import http.client
import http.server
import json
import os
import random
import shutil
import signal
import socket
import sys
import threading
import time
import urllib.request

import helpers
from helpers import StoreCase, model_bytes

MIB = 1 << 20


class Liar(http.server.BaseHTTPRequestHandler):
    """Has everything, asks an honest peer what to answer, and spoils some of it."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path.endswith("/bytes") and self.server.lie == "stall":
            time.sleep(20)
            return
        if self.path.endswith("/bytes"):
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            body = bytearray(self.server.data[first:last + 1])
            if self.server.lie == "bytes":
                body[len(body) // 2] ^= 1
            self.send_response(206)
            self.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, len(self.server.data)))
        else:
            connection = http.client.HTTPConnection(*self.server.behind, timeout=20)
            connection.request("GET", self.path)
            answer = connection.getresponse()
            body = bytearray(answer.read())
            connection.close()
            if "/proof/" in self.path and self.server.lie == "proof":
                body[5] ^= 1
            self.send_response(answer.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass  # The machine has dropped this liar in the meantime.

    def log_message(self, *_):
        pass


class SwarmCase(StoreCase):
    size = 6 * MIB + 321

    def setUp(self):
        super().setUp()
        self.environment["XDG_CACHE_HOME"] = os.path.join(self.home, "cache")
        self.data = model_bytes(self.size)
        path = os.path.join(self.home, "tiny.gguf")
        with open(path, "wb") as file:
            file.write(self.data)
        self.succeed("pull", path, "--name", "tiny", "-q")

    def share(self, host="127.0.0.2", *flags):
        process = self.start("share", "tiny", "--host", host, "--port", "0", "--json", *flags)
        self.addCleanup(self.end, process)
        report = json.loads(process.stdout.readline())
        return "%s:%d" % (host, report["port"]), report["models"][0]["link"], process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def liar(self, lie, behind):
        host, port = behind.split(":")
        server = http.server.ThreadingHTTPServer(("127.0.0.9", 0), Liar)
        server.daemon_threads = True
        server.lie, server.behind, server.data = lie, (host, int(port)), self.data
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return "127.0.0.9:%d" % server.server_address[1]

    def free_port(self, host):
        with socket.socket() as probe:
            probe.bind((host, 0))
            return probe.getsockname()[1]

    def offered_pieces(self, address):
        """The pieces that a fetching machine says to have. None: it has not begun."""
        digest = hashlib.sha256(self.data).digest()
        key = hashlib.sha256(b"doppler swarm 1 file\n" + digest).hexdigest()
        try:
            with urllib.request.urlopen("http://%s/swarm/1/files/%s" % (address, key), timeout=5) as answer:
                pieces = json.load(answer)["pieces"]
        except (OSError, ValueError):
            return None
        return -(-self.size // MIB) if pieces == "all" else sum(int(digit, 16).bit_count() for digit in pieces)

    def other_home(self, name):
        """Another machine's store."""
        home = os.path.join(self.home, name)
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        return home

    def got(self, home):
        with open(os.path.join(home, "models", "tiny", "tiny.gguf"), "rb") as file:
            return file.read()


class OneToOne(SwarmCase):
    def test_a_link_brings_the_model(self):
        address, link, _ = self.share()
        home = self.other_home("b")
        report = self.succeed("pull", link, "--peer", address, "--json", DOPPLER_HOME=home)
        self.assertEqual((report["peer_bytes"], report["received_bytes"]), (self.size, 0))
        self.assertEqual([(p["bytes"], p["dropped"]) for p in report["peers"]], [(self.size, "")])
        self.assertTrue(report["files"][0]["verified"])
        self.assertEqual(report["source"], link)
        self.assertEqual(self.got(home), self.data)
        self.assertIn("is stored already", self.succeed("pull", link, "--peer", address, DOPPLER_HOME=home))

    def test_a_source_with_a_hash_is_asked_for_the_rest_only(self):
        digest = self.digest()
        served = self.start("serve-models", "--port", "0", "--json")
        self.addCleanup(self.end, served)
        url = json.loads(served.stdout.readline())["url"] + "tiny/tiny.gguf"
        address, _, _ = self.share()
        home = self.other_home("b")
        report = self.succeed("pull", url, "--sha256", digest, "--peer", address, "--json", DOPPLER_HOME=home)
        self.assertEqual((report["peer_bytes"], report["received_bytes"]), (self.size, 0))
        # Without a peer that answers everything comes from the source.
        home = self.other_home("c")
        report = self.succeed("pull", url, "--sha256", digest, "--peer", "127.0.0.8:1", "--timeout", "2", "--json",
                              DOPPLER_HOME=home)
        self.assertEqual((report["peer_bytes"], report["received_bytes"]), (0, self.size))
        self.assertEqual(self.got(home), self.data)

    def digest(self):
        with open(os.path.join(self.store, "tiny", "doppler.json"), encoding="utf-8") as file:
            return json.load(file)["files"][0]["sha256"]

    def test_wrong_command_lines(self):
        for flags, sentence in ((("swarm:12",), "is no link"), (("swarm:" + 64 * "0", "--peer", "a/b"), "is no address of a peer"),
                                (("x.gguf", "--peer", "a", "--share", "127.0.0.1:1"), "need a source swarm:"),
                                (("x.gguf", "--from", "y.gguf"), "need a source swarm:"),
                                (("x.gguf", "--in-order"), "needs --peer or --nearby"),
                                (("x.gguf", "--limit", "2M"), "need --share")):
            code, _, err = self.run_doppler("pull", *flags)
            self.assertEqual(code, 2, err)
            self.assertRegex(err, sentence)
        self.fail_with("No peer has swarm:0", "pull", "swarm:" + 64 * "0", "--peer", self.share()[0])
        self.assertEqual(self.run_doppler("share")[0], 2)
        self.fail_with("nothing", "share", "nothing")

    def test_a_killed_pull_goes_on(self):
        address, link, _ = self.share("127.0.0.2", "--limit", "1M")
        home, own = self.other_home("b"), "127.0.0.3:%d" % self.free_port("127.0.0.3")
        for pieces in (1, 3):  # of 7: a slow machine and a fast one are killed with the same number of pieces
            process = self.start("pull", link, "--peer", address, "--share", own, DOPPLER_HOME=home)
            self.addCleanup(self.end, process)
            while (self.offered_pieces(own) or 0) < pieces:
                self.assertIsNone(process.poll())
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        report = self.succeed("pull", link, "--peer", address, "--json", DOPPLER_HOME=home)
        self.assertGreaterEqual(report["resumed_bytes"], 2 * MIB)
        self.assertEqual(report["resumed_bytes"] + report["peer_bytes"], self.size)
        self.assertEqual(self.got(home), self.data)

    def test_the_source_gives_what_a_machine_that_left_had(self):
        served = self.start("serve-models", "--port", "0", "--json")
        self.addCleanup(self.end, served)
        url = json.loads(served.stdout.readline())["url"] + "tiny/tiny.gguf"
        address, link, sharing = self.share("127.0.0.2", "--limit", "1M")
        home = self.other_home("b")
        pull = self.start("pull", link, "--peer", address, "--from", url, "--timeout", "2", "--json",
                          DOPPLER_HOME=home)
        time.sleep(2.5)
        self.end(sharing)
        out, err = pull.communicate()
        self.assertEqual(pull.returncode, 0, err)
        report = json.loads(out)
        self.assertEqual(report["peer_bytes"] + report["received_bytes"], self.size)
        self.assertGreater(report["received_bytes"], 0)
        self.assertEqual(self.got(home), self.data)
        # A source that has something else, or is not there, is worth a line only.
        address, link, _ = self.share()
        for source, line in ((url.replace("tiny.gguf", "doppler.json"), "it should have"),
                             ("http://127.0.0.8:1/tiny.gguf", "Nothing answers")):
            home = self.other_home("c" + line[:2])
            code, _, err = self.run_doppler("pull", link, "--peer", address, "--from", source, "--timeout", "2",
                                            DOPPLER_HOME=home)
            self.assertEqual(code, 0, err)
            self.assertIn(line, err)
            self.assertEqual(self.got(home), self.data)

    def test_machines_nearby_are_found(self):
        address, link, _ = self.share()
        _, _, hidden = self.share("127.0.0.3", "--hidden")
        listed = self.succeed("peers", "tiny", "--json")["peers"]
        if not any(row["address"] == address for row in listed):
            self.skipTest("multicast DNS does not work here")
        self.assertIn({"address": address, "model": "tiny", "held_bytes": self.size, "bytes": self.size,
                       "problem": ""}, listed)
        self.assertFalse([row for row in listed if row["address"].startswith("127.0.0.3")])
        self.end(hidden)
        self.assertIn("6.00 MiB", self.succeed("peers", "tiny", "--peer", address, "--only-named"))
        home = self.other_home("b")
        report = self.succeed("pull", link, "--json", DOPPLER_HOME=home)
        self.assertEqual(report["peer_bytes"], self.size)
        self.assertEqual(self.got(home), self.data)

    def test_serve_shares_and_counts(self):
        port = self.free_port("127.0.0.2")
        served = self.start("serve", "--port", "0", "--share", "tiny", "--share-at", "127.0.0.2:%d" % port, "--json")
        self.addCleanup(self.end, served)
        report = json.loads(served.stdout.readline())
        shared = report["shared"][0]
        self.assertEqual(shared["address"], "127.0.0.2:%d" % port)
        home = self.other_home("b")
        self.succeed("pull", shared["link"], "--peer", shared["address"], DOPPLER_HOME=home)
        self.assertEqual(self.got(home), self.data)
        with urllib.request.urlopen(report["url"] + "/metrics") as answer:
            self.assertIn("\ndoppler:shared_bytes_total %d\n" % self.size, answer.read().decode())

    def test_a_link_names_a_model(self):
        model = os.path.join(os.path.dirname(__file__), "..", "..", "models", "storyteller.gguf")
        self.succeed("pull", model, "--name", "teller", "-q")
        process = self.start("share", "teller", "--host", "127.0.0.2", "--port", "0", "--json")
        self.addCleanup(self.end, process)
        report = json.loads(process.stdout.readline())
        link, address = report["models"][0]["link"], "127.0.0.2:%d" % report["port"]
        home = self.other_home("b")
        self.fail_with("is not in the store", "tokenize", "-m", link, "a", DOPPLER_HOME=home)
        told = self.succeed("run", "-m", link, "--peer", address, "--max-tokens", "4", "-q", "Once", DOPPLER_HOME=home)
        self.assertTrue(told.strip())
        self.end(process)
        self.assertTrue(self.succeed("tokenize", "-m", link, "Once", DOPPLER_HOME=home))
        self.assertEqual(self.run_doppler("run", "-m", "swarm:12", "a")[0], 1)


class Lies(SwarmCase):
    def test_liars_are_dropped_and_the_model_is_right(self):
        address, link, _ = self.share()
        for lie, why in (("bytes", "wrong bytes"), ("proof", "wrong proof"), ("stall", None)):
            with self.subTest(lie):
                liar = self.liar(lie, address)
                home = self.other_home(lie)
                report = self.succeed("pull", link, "--peer", liar, "--peer", address, "--timeout", "2", "--json",
                                      DOPPLER_HOME=home)
                self.assertEqual(self.got(home), self.data)
                dropped = {p["address"]: p["dropped"] for p in report["peers"]}
                self.assertEqual(dropped["http://" + address], "")
                if why and dropped["http://" + liar]:  # it may not have been asked before all was there
                    self.assertIn(why, dropped["http://" + liar])
                alone = self.other_home(lie + "-alone")
                self.fail_with("The peers gave 0 B|No peer", "pull", link, "--peer", liar, "--timeout", "2",
                               DOPPLER_HOME=alone)
                self.assertFalse(os.path.exists(os.path.join(alone, "models", "tiny")))


class Classroom(SwarmCase):
    """Many machines that pull at the same time from one with a slow line, and from each other."""
    size = 24 * MIB - 777
    rate = 1.2 * MIB
    pupils = 12

    def pupil(self, number, link, others, *flags):
        home = self.other_home("pupil-%d" % number)
        peers = [flag for other in others if other != self.addresses[number] for flag in ("--peer", other)]
        process = self.start("pull", link, "--share", self.addresses[number], "--json", *peers, *flags,
                             DOPPLER_HOME=home)
        self.addCleanup(self.end, process)
        return home, process

    def class_pulls(self, liars=()):
        """All reports, the seconds until the last one, and the bytes that the first machine sent."""
        first, link, sharing = self.share("127.0.0.2", "--limit", str(int(self.rate)))
        self.liars = [self.liar(lie, first) for lie in liars]
        self.addresses = ["%s:%d" % (host, self.free_port(host)) for host in
                          ("127.0.1.%d" % (1 + i) for i in range(self.pupils))]
        everybody = [first, *self.liars, *self.addresses]
        start = time.monotonic()
        pulls = [self.pupil(i, link, everybody, "--timeout", "10") for i in range(self.pupils)]
        reports = []

        def finish(home, process):
            text = ""
            while not text.endswith("\n}\n"):
                line = process.stdout.readline()
                if not line:
                    break
                text += line
            seconds = time.monotonic() - start
            _, err = process.communicate()
            reports.append((home, process.returncode, text, seconds, err))

        threads = [threading.Thread(target=finish, args=pull) for pull in pulls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for home, code, text, seconds, err in reports:
            self.assertEqual(code, 0, err)
            self.assertEqual(self.got(home), self.data)
        sharing.send_signal(signal.SIGTERM)
        sent = json.loads(sharing.communicate()[0].splitlines()[-1])["bytes_sent"]
        seconds = max(seconds for *_, seconds, _ in reports)
        print("%d machines: %.1f s, a single one %.1f s; the first machine sent %.2f copies" %
              (self.pupils, seconds, self.size / self.rate, sent / self.size), file=sys.stderr)
        return [json.loads(text) for _, _, text, _, _ in reports], seconds, sent

    def test_a_class_fetches_from_each_other(self):
        _, seconds, sent = self.class_pulls()
        self.assertLess(sent, 2 * self.size)
        self.assertLess(seconds, 1.6 * self.size / self.rate)

    def test_a_killed_machine_keeps_what_it_had(self):
        first, link, _ = self.share("127.0.0.2", "--limit", "3M")
        self.addresses = ["%s:%d" % (host, self.free_port(host)) for host in ("127.0.1.1", "127.0.1.2")]
        pulls = [self.pupil(i, link, [first, *self.addresses]) for i in range(2)]
        home, killed = pulls[0]
        had = None
        until = time.monotonic() + random.uniform(2, 6)
        while time.monotonic() < until:
            had = self.offered_pieces(self.addresses[0])
            time.sleep(0.05)
        killed.kill()
        killed.communicate()
        again = self.pupil(0, link, [first, *self.addresses])[1]
        out, err = again.communicate()
        self.assertEqual(again.returncode, 0, err)
        report = json.loads(out)
        self.assertGreaterEqual(report["resumed_bytes"], ((had or 0) - 1) * MIB)  # its last piece may be the short one
        if not report["was_there"]:
            self.assertEqual(report["resumed_bytes"] + report["peer_bytes"], self.size)
        self.assertEqual(self.got(home), self.data)
        out, err = pulls[1][1].communicate()
        self.assertEqual(pulls[1][1].returncode, 0, err)
        self.assertEqual(json.loads(out)["peer_bytes"], self.size)
        self.assertEqual(self.got(pulls[1][0]), self.data)

    def test_three_liars_spoil_nothing(self):
        reports, _, _ = self.class_pulls(("bytes", "proof", "stall"))
        for report in reports:
            for peer in report["peers"]:
                if peer["address"] in ("http://" + liar for liar in self.liars[::2]):
                    self.assertEqual(peer["bytes"], 0)


if __name__ == "__main__":
    helpers.main()
