"""`doppler serve` with a model that sees: pictures by the APIs of OpenAI, Anthropic and Ollama, one request at a time
and several at once.
  python3 images_test.py --doppler PROGRAM --model FOLDER --cutter FOLDER --images FOLDER [unittest options]
The model is the case qwen3_vl of tests/data/vision.tar.xz, the one that cuts pictures is that of
vision_pan_and_scan.tar.xz, the pictures are those of images.tar.xz, all unpacked."""

import base64
import http.server
import json
import os
import sys
import threading
import time
import unittest

from served import Served

DOPPLER, MODEL, CUTTER, IMAGES = "doppler", "", "", ""
FLAGS = ("--ctx", "256", "--parallel", "4", "--temp", "0", "--lane", "exact")


def picture(name):
    with open(os.path.join(IMAGES, name), "rb") as file:
        return base64.b64encode(file.read()).decode()


def url(name):
    return f"data:image/png;base64,{picture(name)}"


def reference(folder, prompt):
    with open(os.path.join(folder, "prompts.json"), encoding="utf-8") as file:
        return json.load(file)[prompt]


def words(prompt, folder=None):
    """The user's text of a prompt of the references."""
    parts = reference(folder or MODEL, prompt)["messages"][0]["content"]
    return next(part["text"] for part in parts if part["type"] == "text")


class PictureHost(http.server.BaseHTTPRequestHandler):
    """The pictures at /NAME; /to/URL leads there; /long is longer than the server takes."""

    def do_GET(self):
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path[4:])
            self.end_headers()
            return
        if self.path == "/long":
            body = bytes(21 << 20)
        elif os.path.exists(IMAGES + self.path):
            with open(IMAGES + self.path, "rb") as file:
                body = file.read()
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.end_headers()
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def log_message(self, *_):
        pass


def setUpModule():
    ImageCase.host = http.server.ThreadingHTTPServer(("127.0.0.1", 0), PictureHost)
    threading.Thread(target=ImageCase.host.serve_forever, daemon=True).start()
    ImageCase.at = f"127.0.0.1:{ImageCase.host.server_port}"
    ImageCase.served = Served(DOPPLER, *FLAGS, "--allow-image-host", ImageCase.at, "--model", "cutter=" + CUTTER,
                             model="seer=" + MODEL, template=None)
    while ImageCase.served.ask("GET", "/health")[0] != 200:
        assert ImageCase.served.process.poll() is None
        time.sleep(0.1)


def tearDownModule():
    ImageCase.served.end()
    ImageCase.host.shutdown()
    assert ImageCase.served.process.returncode == 0


class ImageCase(unittest.TestCase):
    served = host = at = None

    def good(self, path, body):
        status, _, answer = self.served.post(path, {"ignore_eos": True, "max_tokens": 6, **body})
        self.assertEqual(status, 200, answer)
        return answer

    def refused(self, path, body):
        status, _, answer = self.served.post(path, body)
        self.assertEqual(status, 400, answer)
        error = answer["error"]
        return error if isinstance(error, str) else error["message"]

    def chat(self, *names, text=None):
        parts = [{"type": "image_url", "image_url": {"url": url(name)}} for name in names]
        parts.append({"type": "text", "text": text or words("start")})
        answer = self.good("/v1/chat/completions", {"messages": [{"role": "user", "content": parts}]})
        return answer["choices"][0]["message"]["content"], answer["usage"]


class Apis(ImageCase):
    def test_a_picture_has_the_references_tokens_and_is_cached(self):
        text, usage = self.chat("a.png", text="What is this, and where? " + words("start"))
        again, usage_again = self.chat("a.png", text="What is this, and where? " + words("start"))
        self.assertEqual(again, text)
        self.assertGreater(usage_again["prompt_tokens_details"]["cached_tokens"], 16)
        self.assertEqual(usage_again["prompt_tokens"], usage["prompt_tokens"])
        self.assertNotEqual(self.chat("s_exif6.png", text="What is this, and where? " + words("start"))[0], text)

    def test_every_api_gives_the_same_answer(self):
        wanted = self.chat("a.png")[0]
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture("a.png")}}
        body = {"messages": [{"role": "user", "content": [image, {"type": "text", "text": words("start")}]}]}
        self.assertEqual(self.good("/v1/messages", body)["content"][0]["text"], wanted)
        asked = {"role": "user", "content": words("start"), "images": [picture("a.png")]}
        options = {"num_predict": 6, "ignore_eos": True}
        body = {"messages": [asked], "stream": False, "options": options}
        self.assertEqual(self.good("/api/chat", body)["message"]["content"], wanted)
        body = {"prompt": words("start"), "images": [picture("a.png")], "stream": False, "options": options}
        self.assertEqual(self.good("/api/generate", body)["response"], wanted)
        parts = [{"type": "input_image", "image_url": url("a.png")}, {"type": "input_text", "text": words("start")}]
        body = {"input": [{"role": "user", "content": parts}], "max_output_tokens": 6}
        self.assertEqual(self.good("/v1/responses", body)["output"][-1]["content"][0]["text"], wanted)

    def test_addresses_at_allowed_hosts_are_fetched(self):
        wanted = self.chat("a.png")[0]

        def asked(address):
            parts = [{"type": "image_url", "image_url": {"url": address}}, {"type": "text", "text": words("start")}]
            return {"messages": [{"role": "user", "content": parts}]}

        chat = "/v1/chat/completions"
        for path in ("a.png", "to//a.png", f"to/http://{self.at}/a.png"):
            address = f"http://{self.at}/{path}"
            self.assertEqual(self.good(chat, asked(address))["choices"][0]["message"]["content"], wanted, address)
        image = {"type": "image", "source": {"type": "url", "url": f"http://{self.at}/a.png"}}
        body = {"messages": [{"role": "user", "content": [image, {"type": "text", "text": words("start")}]}]}
        self.assertEqual(self.good("/v1/messages", body)["content"][0]["text"], wanted)
        parts = [{"type": "input_image", "image_url": f"http://{self.at}/a.png"},
                 {"type": "input_text", "text": words("start")}]
        body = {"input": [{"role": "user", "content": parts}], "max_output_tokens": 6}
        self.assertEqual(self.good("/v1/responses", body)["output"][-1]["content"][0]["text"], wanted)
        port = self.host.server_port
        for path, reason in (("long", "longer than 20.0 MiB"), ("none", "status 404"),
                             (f"to/http://localhost:{port}/a.png", f"The host localhost:{port} is not allowed"),
                             ("to/file:///etc/passwd", "file"), ("to//to//to//to//a.png", "more than 3 times")):
            self.assertIn(reason, self.refused(chat, asked(f"http://{self.at}/{path}")), path)
        self.assertIn("is not allowed", self.refused(chat, asked(f"http://localhost:{port}/a.png")))

    def test_pictures_and_texts_at_once_are_each_by_itself(self):
        kinds = [("a.png",), (), ("c.png", "a.png"), ("b.png",)]
        alone = [self.chat(*kind)[0] for kind in kinds]
        got = [None] * 2 * len(kinds)

        def ask(i):
            got[i] = self.chat(*kinds[i % len(kinds)])[0]

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(got))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(got, alone * 2)

    def test_what_cannot_be_read_is_named(self):
        def part(address):
            content = [{"type": "image_url", "image_url": {"url": address}}]
            return {"messages": [{"role": "user", "content": content}]}

        chat = "/v1/chat/completions"
        self.assertIn("example.org is not allowed", self.refused(chat, part("https://example.org/a.png")))
        self.assertIn("base64", self.refused(chat, part("data:image/png;base64,???")))
        self.assertIn("known formats are PNG", self.refused(chat, part("data:image/png;base64,aGVsbG8gaGVsbG8=")))
        self.assertIn("A PNG picture cannot be read", self.refused(chat, part(url("a.png")[:398])))
        self.assertIn("base64", self.refused("/api/chat", {"messages": [{"role": "user", "images": [1]}]}))

    def detailed(self, model, detail, **more):
        """A chat about a.png, whose edges are 61 and 37 long."""
        folder = {"seer": MODEL, "cutter": CUTTER}[model]
        image = {"url": url("a.png"), **({"detail": detail} if detail else {})}
        parts = [{"type": "image_url", "image_url": image}, {"type": "text", "text": words("start", folder)}]
        answer = self.good("/v1/chat/completions",
                           {"model": model, "messages": [{"role": "user", "content": parts}], **more})
        return answer["choices"][0]["message"]["content"], answer["usage"]["prompt_tokens"]

    def test_high_detail_is_pan_and_scan_where_the_model_has_it(self):
        with_crops = reference(CUTTER, "start")["tokens"]
        cut, plain = self.detailed("cutter", "high"), self.detailed("cutter", None)
        self.assertEqual(cut[1], with_crops)
        self.assertLess(plain[1], with_crops - 2 * 9)  # two crops of 9 tokens, and the words between
        self.assertNotEqual(cut[0], plain[0])
        self.assertEqual(self.detailed("cutter", "low"), plain)
        self.assertEqual(self.detailed("cutter", "auto"), plain)
        self.assertEqual(self.detailed("cutter", "high"), cut)  # the cache has both
        self.assertEqual(self.detailed("seer", "high"), self.detailed("seer", None))
        parts = [{"type": "input_image", "image_url": url("a.png"), "detail": "high"},
                 {"type": "input_text", "text": words("start", CUTTER)}]
        body = {"model": "cutter", "input": [{"role": "user", "content": parts}], "max_output_tokens": 6}
        self.assertEqual(self.good("/v1/responses", body)["usage"]["input_tokens"], with_crops)

    def test_the_flag_holds_where_a_request_does_not_say(self):
        served = Served(DOPPLER, *FLAGS, "--pan-and-scan", model="cutter=" + CUTTER, template=None)
        others, ImageCase.served = ImageCase.served, served
        try:
            while served.ask("GET", "/health")[0] != 200:
                self.assertIsNone(served.process.poll())
                time.sleep(0.1)
            with_crops = reference(CUTTER, "start")["tokens"]
            for detail in (None, "auto", "high"):
                self.assertEqual(self.detailed("cutter", detail)[1], with_crops, detail)
            self.assertLess(self.detailed("cutter", "low")[1], with_crops)
        finally:
            ImageCase.served = others
            served.end()

    def test_capabilities_say_vision(self):
        self.assertIn("vision", self.good("/api/show", {"model": "seer"})["capabilities"])
        self.assertIn("vision", self.served.ask("GET", "/v1/models")[2]["data"][0]["capabilities"])
        self.assertIn("vision", self.served.ask("GET", "/props")[2]["models"][0]["capabilities"])


if __name__ == "__main__":
    for flag in ("--doppler", "--model", "--cutter", "--images"):
        at = sys.argv.index(flag)
        globals()[flag[2:].upper()] = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    unittest.main()
