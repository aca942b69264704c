"""`doppler share` and `doppler pull --peer`: several loopback addresses, machines that lie or stall, kill -9, and a
source whose hash decides."""

import http.client
import http.server
import json
import os
import shutil
import signal
import threading
import time

import helpers
from helpers import StoreCase, model_bytes

MIB = 1 << 20


class Liar(http.server.BaseHTTPRequestHandler):
    """Passes requests on to an honest peer and spoils what comes back."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path.endswith("/bytes") and self.server.lie == "stall":
            time.sleep(20)
            return
        connection = http.client.HTTPConnection(*self.server.behind, timeout=20)
        connection.request("GET", self.path, headers={k: v for k, v in self.headers.items() if k == "Range"})
        answer = connection.getresponse()
        body = bytearray(answer.read())
        if (self.path.endswith("/bytes"), self.server.lie) == (True, "bytes") and body:
            body[len(body) // 2] ^= 1
        if ("/proof/" in self.path, self.server.lie) == (True, "proof"):
            body[5] ^= 1
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name in ("Content-Range", "Content-Length"):
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.server.bytes_sent += len(body)

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
        server.lie, server.behind, server.bytes_sent = lie, (host, int(port)), 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server, "127.0.0.9:%d" % server.server_address[1]

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
        for flags, sentence in ((("swarm:12",), "is no link"), (("swarm:" + 64 * "0",), "needs --peer"),
                                (("swarm:" + 64 * "0", "--peer", "a/b"), "is no address of a peer"),
                                (("x.gguf", "--peer", "a", "--share", "127.0.0.1:1"), "needs a source swarm:")):
            code, _, err = self.run_doppler("pull", *flags)
            self.assertEqual(code, 2, err)
            self.assertRegex(err, sentence)
        self.fail_with("No peer has swarm:0", "pull", "swarm:" + 64 * "0", "--peer", self.share()[0])
        self.assertEqual(self.run_doppler("share")[0], 2)
        self.fail_with("nothing", "share", "nothing")

    def test_a_killed_pull_goes_on(self):
        address, link, _ = self.share("127.0.0.2", "--limit", "2M")
        home = self.other_home("b")
        for _ in range(2):
            process = self.start("pull", link, "--peer", address, DOPPLER_HOME=home)
            time.sleep(1.5)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        report = self.succeed("pull", link, "--peer", address, "--json", DOPPLER_HOME=home)
        self.assertGreater(report["resumed_bytes"], 0)
        self.assertEqual(report["resumed_bytes"] + report["peer_bytes"], self.size)
        self.assertEqual(self.got(home), self.data)


class Lies(SwarmCase):
    def test_liars_are_dropped_and_the_model_is_right(self):
        address, link, _ = self.share()
        for lie, why in (("bytes", "wrong bytes"), ("proof", "wrong proof"), ("stall", None)):
            with self.subTest(lie):
                _, liar = self.liar(lie, address)
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


if __name__ == "__main__":
    helpers.main()
