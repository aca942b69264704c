"""`doppler pull` against a server that drops, stalls, truncates, corrupts, lies and redirects, and kill -9 at random
moments. A new misbehaviour is a fault of faulty_server.py and a test here."""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

import helpers
from faulty_server import Corrupt, Drop, Fault, FaultyServer, File, Stall, Status
from helpers import StoreCase, model_bytes

MIB = 1 << 20
PATH = "/models/tiny.gguf"


class PullCase(StoreCase):
    size = 3 * MIB

    def setUp(self):
        super().setUp()
        self.data = model_bytes(self.size)
        self.file = File(self.data)
        self.server = FaultyServer({PATH: self.file})
        self.addCleanup(self.server.close)
        self.url = self.server.url(PATH)

    def pull(self, *arguments, **environment):
        report = self.succeed("pull", "--json", self.url, *arguments, **environment)
        self.assertEqual(self.stored(report["name"], report["entry"]), self.data)
        self.assertEqual(report["files"][0]["sha256"], hashlib.sha256(self.data).hexdigest())
        return report

    def refuse(self, sentence, *arguments, **environment):
        err = self.fail_with(sentence, "pull", self.url, *arguments, **environment)
        self.assertFalse(os.path.exists(os.path.join(self.store, "tiny")))
        self.assert_nothing_half()
        return err


class Interruptions(PullCase):
    def test_a_dropped_connection_goes_on_at_the_byte(self):
        self.file.faults = [Drop(after=1_000_000), Drop(after=500_000)]
        self.pull()
        self.assertEqual(self.server.ranges(PATH), [0, 1_000_000, 1_500_000])
        self.assertEqual(self.server.sent_bytes, len(self.data) + 1)  # and the probe's byte

    def test_a_second_run_goes_on_at_the_byte(self):
        self.file.faults = [Drop(after=1_234_567)]
        self.refuse(r"lost after|ended too early", "--retries", "0")
        listing = self.succeed("list", "--json")
        self.assertEqual(listing["unfinished"], [{"name": "tiny", "source": self.url, "bytes_done": 1_234_567,
                                                  "bytes_total": None}])
        self.server.reset()
        report = self.pull()
        self.assertEqual(report["resumed_bytes"], 1_234_567)
        self.assertEqual(self.server.ranges(PATH), [1_234_567])
        self.assertEqual(self.server.sent_bytes, len(self.data) - 1_234_567 + 1)

    def test_an_unfinished_download_goes_on_by_its_name_and_is_no_model(self):
        self.file.faults = [Drop(after=MIB)]
        self.refuse(".", "--retries", "0")
        self.fail_with('"tiny" is not finished', "inspect", "tiny")
        self.server.reset()
        self.succeed("pull", "tiny")
        self.assertEqual(self.stored("tiny", "tiny.gguf"), self.data)
        self.assertEqual(self.server.ranges(PATH), [MIB])

    def test_a_stalled_connection_is_cut_and_goes_on(self):
        self.file.faults = [Stall(after=MIB)]
        self.pull("--timeout", "1")
        self.assertEqual(self.server.ranges(PATH), [0, MIB])

    def test_a_server_that_always_stalls_is_given_up(self):
        self.file.always = Stall(after=0)
        self.refuse(r"stalled: no byte for 1 s.*Given up after 2 tries", "--timeout", "1", "--retries", "1")

    def test_ctrl_c_keeps_what_is_there(self):
        self.file.slow = 0.02
        process = self.start("pull", self.url)
        self.wait_until_sent(MIB // 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 1)
        self.assertIn("The arrived bytes are kept", err)
        self.file.slow = 0
        self.assertGreaterEqual(self.pull()["resumed_bytes"], MIB // 4)

    def wait_until_sent(self, count):
        end = time.time() + 20
        while self.server.sent_bytes < count and time.time() < end:
            time.sleep(0.005)

    def test_what_changed_between_two_runs_is_begun_anew(self):
        self.file.faults = [Drop(after=MIB)]
        self.refuse(".", "--retries", "0")
        self.data = model_bytes(self.size, seed=2)
        self.server.files[PATH] = File(self.data)
        code, _, err = self.run_doppler("pull", self.url)
        self.assertEqual(code, 0)
        self.assertIn("begun anew", err)
        self.assertEqual(self.stored("tiny", "tiny.gguf"), self.data)

    def test_without_hash_and_validator_nothing_is_trusted(self):
        self.server.files[PATH] = self.file = File(self.data, etag=None)
        self.file.faults = [Drop(after=MIB)]
        self.refuse(".", "--retries", "0")
        self.assertEqual(self.pull()["resumed_bytes"], 0)

    def test_what_changes_meanwhile_is_an_error(self):
        self.file.faults = [Drop(after=MIB), Fault(replaced=model_bytes(self.size, seed=3))]
        self.refuse("changed while it was downloaded")

    def test_two_pulls_of_one_model(self):
        self.file.slow = 0.05
        first = self.start("pull", self.url)
        self.wait_until_sent(65536)
        self.fail_with('Another process is pulling "tiny"', "pull", self.url)
        first.kill()
        first.communicate()


class Kills(PullCase):
    size = 20 * MIB  # three pieces

    def test_kill_9_at_random_moments_leaves_nothing_half_and_goes_on(self):
        random.seed(7)
        for _ in range(helpers.KILLS):
            shutil.rmtree(self.home, ignore_errors=True)
            self.server.reset()
            self.file.slow = 0.0008
            kills = 0
            deadline = random.uniform(0.02, 0.5)
            while True:
                process = subprocess.Popen([helpers.DOPPLER, "pull", "--json", self.url], env=self.environment,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                try:
                    out, err = process.communicate(timeout=deadline if kills < 3 else 60)
                    self.assertEqual(process.returncode, 0, err)
                    break
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    kills += 1
                    self.assert_nothing_half()
                    deadline = random.uniform(0.02, 0.5)
            self.assertEqual(self.stored("tiny", "tiny.gguf"), self.data)
            self.assert_nothing_half()
            # Twice is sent only what a killed process had not yet taken from its sockets, and a byte a probe.
            lost = self.server.sent_bytes - len(self.data)
            self.assertLess(lost, kills * MIB + 5)

    def test_a_kill_between_the_last_byte_and_the_last_rename(self):
        self.pull()
        folder = os.path.join(self.store, "tiny")
        os.rename(folder, folder + ".part")
        os.rename(folder + ".part/tiny.gguf", folder + ".part/tiny.gguf.part")
        self.assertEqual(self.succeed("list", "--json")["models"], [])
        self.server.reset()
        self.assertTrue(self.pull()["was_there"])
        self.assertEqual(self.server.sent_bytes, 0)


class Pieces(PullCase):
    size = 20 * MIB

    def test_ranges_come_side_by_side(self):
        self.pull("--connections", "3")
        self.assertEqual(sorted(self.server.ranges(PATH)), [0, 8 * MIB, 16 * MIB])
        self.assertEqual(self.server.sent_bytes, len(self.data) + 1)

    def test_a_line_that_drops_all_the_time_but_gets_on_is_borne(self):
        self.file.faults = [Drop(after=MIB) for _ in range(8)]
        self.pull("--connections", "2", "--retries", "1")


class Answers(PullCase):
    def test_each_status_has_its_sentence(self):
        rows = [(Status(401), r"needs a login or does not exist \(HTTP 401\).*HF_TOKEN"),
                (Status(403), r"may not be read \(HTTP 403\)"),
                (Status(404), r"There is nothing at http://127.0.0.1:\d+/models/tiny.gguf \(HTTP 404\)"),
                (Status(410), r"There is nothing at .* \(HTTP 410\)"),
                (Status(416), r"does not have the bytes that were asked for \(HTTP 416\)"),
                (Status(418), r"answers HTTP 418, which is no file"),
                (Status(500), r"has a problem of its own \(HTTP 500\)"),
                (Status(503), r"has a problem of its own \(HTTP 503\)"),
                (Status(429, Retry_After="3600"), r"asked too often \(HTTP 429\).*asks to wait 3600 s"),
                (Status(304), r"answers HTTP 304")]
        for fault, sentence in rows:
            with self.subTest(sentence):
                self.file.always = fault
                self.refuse(sentence, "--retries", "0")
                self.assertEqual(os.listdir(self.store) if os.path.isdir(self.store) else [], [])

    def test_a_server_in_trouble_is_tried_again_and_retry_after_is_kept(self):
        self.file.faults = [Status(503), Status(429, Retry_After="2")]
        start = time.time()
        self.pull()
        self.assertGreater(time.time() - start, 2.0)

    def test_a_missing_page_is_not_tried_again(self):
        self.file.always = Status(404)
        self.refuse("HTTP 404")
        self.assertEqual(len(self.server.requests), 1)

    def test_other_bytes_than_asked_for(self):
        self.file.faults = [Fault(shift=5)]
        self.refuse(r"answers with others \(\"bytes 5-")

    def test_more_bytes_than_announced_are_not_taken(self):
        self.file.faults = [Fault(extra=100)]
        self.refuse("sends more bytes than it was asked for")

    def test_cut_at_once_each_time(self):
        self.file.always = Drop(after=0)
        self.refuse(r"(ended too early|lost) after 0 bytes .*|.*Given up after 2 tries", "--retries", "1")

    def test_announced_longer_than_it_is(self):
        self.file.faults = [Fault(announce_more=10)]
        self.pull()  # every byte of the range has arrived

    def test_a_web_page(self):
        self.server.files[PATH] = File(b"<html></html>" * 100, Content_Type="text/html; charset=utf-8")
        self.refuse("is a web page, not a model file")

    def test_what_is_no_model_is_not_stored(self):
        self.server.files[PATH] = File(b"PK\x03\x04" + bytes(5000))
        self.refuse("is no GGUF file")
        self.assertEqual(os.listdir(self.store), [])

    def test_a_file_larger_than_the_disk_is_refused_before(self):
        def huge(handler):
            handler.answer(206, b"x", {"Content-Range": "bytes 0-0/%d" % (1 << 45), "ETag": '"a"'})
        self.server.files[PATH] = huge
        self.refuse(r"needs 32\.0.* more on the disk of .*, which has .* free")
        self.assertEqual(len(self.server.requests), 1)

    def test_sizes_that_no_file_has(self):
        for size in ("99999999999999999999", "-5", "0x10", str(1 << 60)):
            def lying(handler, size=size):
                handler.answer(206, b"x", {"Content-Range": "bytes 0-0/" + size})
            self.server.files[PATH] = lying
            self.refuse("answers with another range|more than any model")

    def test_an_empty_file(self):
        self.server.files[PATH] = lambda handler: handler.answer(200, b"")
        self.refuse("is empty")

    def test_packed_although_not_asked(self):
        self.server.files[PATH] = File(self.data, Content_Encoding="gzip")
        self.refuse(r"packs the file \(gzip\)")

    def test_a_server_without_ranges(self):
        self.server.files[PATH] = self.file = File(self.data, ranges=False)
        self.file.faults = [Drop(after=MIB)]
        self.pull()

    def test_a_server_without_ranges_and_lengths(self):
        self.server.files[PATH] = self.file = File(self.data, ranges=False)
        self.file.length = False
        self.file.faults = [Drop(after=MIB)]
        self.pull()


class Hashes(PullCase):
    def setUp(self):
        super().setUp()
        self.digest = hashlib.sha256(self.data).hexdigest()

    def test_a_corrupted_byte_is_noticed_and_fetched_again(self):
        self.file.faults = [Corrupt(at=2_000_000)]
        code, _, err = self.run_doppler("pull", "--sha256", self.digest, self.url)
        self.assertEqual(code, 0, err)
        self.assertRegex(err, "The SHA-256 of .* is .*, but it should be .*Fetching it once more")
        self.assertEqual(self.stored("tiny", "tiny.gguf"), self.data)

    def test_always_corrupted_is_an_error_and_leaves_nothing(self):
        self.file.always = Corrupt(at=2_000_000)
        self.refuse("The SHA-256 of .* is .*, but it should be " + self.digest, "--sha256", self.digest)

    def test_a_hash_that_the_server_names_is_checked(self):
        self.server.files[PATH] = File(self.data, X_Linked_Etag='"%s"' % self.digest)
        self.assertTrue(self.pull()["files"][0]["verified"])
        self.succeed("rm", "tiny")
        self.server.files[PATH].always = Corrupt(at=5000)
        self.refuse("The SHA-256 of .* is .*, but it should be " + self.digest)

    def test_a_hash_makes_up_for_a_missing_validator(self):
        self.server.files[PATH] = self.file = File(self.data, etag=None)
        self.file.faults = [Drop(after=MIB)]
        self.refuse(".", "--retries", "0", "--sha256", self.digest)
        self.assertEqual(self.pull("--sha256", self.digest)["resumed_bytes"], MIB)

    def test_bytes_changed_on_the_disk_between_runs_are_noticed(self):
        self.file.faults = [Drop(after=MIB)]
        self.refuse(".", "--retries", "0", "--sha256", self.digest)
        with open(os.path.join(self.store, "tiny.part", "tiny.gguf.part"), "r+b") as part:
            part.seek(1000)
            part.write(b"other")
        self.pull("--sha256", self.digest)

    def test_a_journal_of_noise_is_no_journal(self):
        self.file.faults = [Drop(after=MIB)]
        self.refuse(".", "--retries", "0")
        with open(os.path.join(self.store, "tiny.part", "tiny.gguf.journal"), "r+b") as journal:
            journal.write(os.urandom(200))
        self.assertEqual(self.pull()["resumed_bytes"], 0)


class Redirects(PullCase):
    def redirect(self, target):
        return lambda handler: handler.answer(302, b"", {"Location": target})

    def test_are_followed_also_relative(self):
        self.server.files["/a.gguf"] = self.redirect("models/../models/tiny.gguf")
        self.url = self.server.url("/a.gguf")
        self.assertEqual(self.pull()["name"], "a")

    def test_circles_and_long_ways(self):
        self.server.files[PATH] = self.redirect("/b")
        self.server.files["/b"] = self.redirect(PATH)
        self.refuse("redirects in a circle")
        for i in range(20):
            self.server.files["/%d" % i] = self.redirect("/%d" % (i + 1))
        self.server.files[PATH] = self.redirect("/0")
        self.refuse("redirects more than 10 times")

    def test_other_schemes(self):
        for target in ("file:///etc/passwd", "ftp://127.0.0.1/x", "javascript:x", "http://"):
            self.server.files[PATH] = self.redirect(target)
            self.refuse("redirects to .* which is no http or https address")

    def test_the_token_goes_to_the_hub_alone(self):
        other = FaultyServer({"/cdn.gguf": File(self.data)})
        self.addCleanup(other.close)
        self.server.files[PATH] = self.redirect(other.url("/cdn.gguf", host="localhost"))
        self.pull(HF_TOKEN="secret", HF_ENDPOINT=self.server.url(""))
        self.assertEqual(self.server.requests[0][2].get("Authorization"), "Bearer secret")
        self.assertTrue(other.requests)
        for _, _, headers in other.requests:
            self.assertNotIn("Authorization", headers)

    def test_an_address_that_runs_out_is_asked_for_again(self):
        other = FaultyServer({"/cdn.gguf": File(self.data)})
        self.addCleanup(other.close)
        other.files["/cdn.gguf"].faults = [Drop(after=MIB), Status(403)]
        self.server.files[PATH] = self.redirect(other.url("/cdn.gguf?signature=secret"))
        self.pull()
        self.assertEqual(other.ranges("/cdn.gguf"), [0, MIB, MIB])


class NoServer(StoreCase):
    def test_sentences(self):
        self.fail_with("Nothing answers at 127.0.0.1:9:", "pull", "http://127.0.0.1:9/x.gguf")
        self.fail_with("The host nowhere.invalid is not known", "pull", "http://nowhere.invalid/x.gguf")
        self.fail_with("is no file or folder here, no address", "pull", "nothing-at-all")
        self.fail_with("is no file or folder here, no address", "pull", "ftp://127.0.0.1/x.gguf")


class NamesOfStrangers(PullCase):
    def test_addresses_whose_names_are_dangerous(self):
        for path in ("/..%2f..%2fevil.gguf", "/a/%2e%2e", "/.hidden.gguf", "/-rf.gguf", "/a%00.gguf", "/x%5cy.gguf",
                     "/", "/a/..", "/con%3a.gguf"):
            self.server.files[path] = self.file
            self.url = self.server.url(path)
            code, _, err = self.run_doppler("pull", self.url)
            self.assertNotEqual(code, 0, path)
            self.assertFalse(os.path.exists(self.store) and os.listdir(self.store), path)

    def test_odd_characters_become_a_plain_name(self):
        self.server.files["/m/my%20model%20(1).gguf"] = self.file
        self.url = self.server.url("/m/my%20model%20(1).gguf")
        self.assertEqual(self.pull()["name"], "my-model-1")


@unittest.skipUnless(shutil.which("openssl"), "the openssl program makes the certificate")
class Tls(PullCase):
    def setUp(self):
        super().setUp()
        self.certificate = os.path.join(self.home, "certificate.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", self.certificate, "-out", self.certificate + ".crt", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        with open(self.certificate, "a", encoding="utf-8") as both, open(self.certificate + ".crt", encoding="utf-8") as crt:
            both.write(crt.read())
        self.secure = FaultyServer({PATH: self.file}, certificate=self.certificate)
        self.addCleanup(self.secure.close)
        self.url = self.secure.url(PATH, host="localhost")

    def test_an_unknown_certificate_is_refused(self):
        self.refuse("The TLS certificate of localhost:.* is not trusted")

    def test_a_known_one_is_not(self):
        self.pull(SSL_CERT_FILE=self.certificate + ".crt")

    def test_from_https_down_to_http_is_refused(self):
        target = self.server.url(PATH)
        self.secure.files[PATH] = lambda handler: handler.answer(302, b"", {"Location": target})
        self.refuse("redirects from https to http", SSL_CERT_FILE=self.certificate + ".crt")


if __name__ == "__main__":
    helpers.main()
