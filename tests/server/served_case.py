"""The cases of server_test.py share this: bodies, batches, and one server for most, since loading takes longest."""

import json
import os
import shutil
import tempfile
import time
import unittest

from served import Served


class GIVEN:
    """By the command line of server_test.py."""
    doppler = "doppler"
    embedding_model = scoring_model = ""


FLAGS = ("--ctx", "512", "--parallel", "4", "--queue", "8", "--head-timeout", "2", "--body-timeout", "2",
         "--body", "64K", "--temp", "0", "--any-name")
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]

# The embedding model's folder has none: enough for "a", "b" and "ab".
TOKENIZER = {"added_tokens": [], "normalizer": None, "pre_tokenizer": None,
             "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 5, "b": 6, "ab": 7}, "merges": [["a", "b"]]}}


def chat(**fields):
    return {"messages": [{"role": "user", "content": "The fox"}], "max_tokens": 6, **fields}


class ServerCase(unittest.TestCase):
    """With the server of all such cases."""
    served = healths = folder = None

    @classmethod
    def setUpClass(cls):
        if ServerCase.served:
            return
        models = ()
        if GIVEN.embedding_model:
            ServerCase.folder = tempfile.TemporaryDirectory()
            shutil.copytree(GIVEN.embedding_model, cls.folder.name, dirs_exist_ok=True)
            with open(os.path.join(cls.folder.name, "tokenizer.json"), "w", encoding="utf-8") as file:
                json.dump(TOKENIZER, file)
            models = ("-m", "vectors=" + cls.folder.name)
        if GIVEN.scoring_model:
            models += ("-m", "scores=" + GIVEN.scoring_model)
        ServerCase.served = Served(GIVEN.doppler, *FLAGS, *models)
        # It answers before the model is there.
        ServerCase.healths = [cls.served.ask("GET", "/health")]
        while cls.healths[-1][0] != 200:
            assert cls.served.process.poll() is None
            time.sleep(0.01)
            cls.healths.append(cls.served.ask("GET", "/health"))

    @staticmethod
    def end_server():
        """It ends in order and had no fault of its own."""
        if not ServerCase.served:
            return
        lines = ServerCase.served.end()
        if ServerCase.folder:
            ServerCase.folder.cleanup()
        assert ServerCase.served.process.returncode == 0
        assert all(line["status"] < 500 for line in lines if line["path"] != "/health"), lines

    def good(self, path, body):
        status, _, answer = self.served.post(path, body)
        self.assertEqual(status, 200, answer)
        return answer

    def refused(self, path, body, status=400, **fields):
        got, _, answer = self.served.post(path, body, **fields)
        self.assertEqual(got, status, answer)
        return answer["error"]


def completion_lines(count, **fields):
    return "\n".join(json.dumps({"custom_id": str(i), "method": "POST", "url": TEXT, "body": {"prompt": "Once", **fields}})
                     for i in range(count))


def upload(served, lines):
    """A file's id."""
    form = ('--B\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--B\r\n'
            f'Content-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n{lines}\r\n--B--\r\n')
    return served.post("/v1/files", form, Content_Type="multipart/form-data; boundary=B")[2]["id"]


def begin_batch(served, file, endpoint=TEXT):
    body = {"input_file_id": file, "endpoint": endpoint, "completion_window": "24h"}
    return served.post("/v1/batches", body)[2]["id"]


def batch_until(served, batch, is_reached):
    while not is_reached(now := served.ask("GET", "/v1/batches/" + batch)[2]):
        time.sleep(0.05)
    return now


def file_lines(served, file):
    return {line["custom_id"]: line for line in map(json.loads, served.ask("GET", f"/v1/files/{file}/content")[2].splitlines())}
