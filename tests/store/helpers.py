"""Helpers of the tests in this folder: running the program with a store of its own, bytes that look like a model.
  python3 pull_test.py --doppler PROGRAM [--kills N] [unittest options]"""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

DOPPLER, KILLS = "doppler", 5


def main():
    global DOPPLER, KILLS
    arguments = sys.argv[1:]
    for name, kind in (("--doppler", str), ("--kills", int)):
        if name in arguments:
            at = arguments.index(name)
            value = kind(arguments[at + 1])
            del arguments[at:at + 2]
            if name == "--doppler":
                DOPPLER = os.path.abspath(value)
            else:
                KILLS = value
    # The test modules see this module as `helpers`, whichever file was started.
    sys.modules["helpers"].DOPPLER, sys.modules["helpers"].KILLS = DOPPLER, KILLS
    unittest.main(module="__main__", argv=[sys.argv[0], *arguments], verbosity=1)


def model_bytes(size, seed=1):
    """Begins like a GGUF file; the rest is noise, the same for the same seed."""
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + random.Random(seed).randbytes(size - 24)


class StoreCase(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="doppler-store-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.environment = {
            **{k: v for k, v in os.environ.items()
               if not k.lower().endswith("_proxy") and k not in ("HF_TOKEN", "HF_ENDPOINT", "SSL_CERT_FILE")},
            "DOPPLER_HOME": self.home, "NO_PROXY": "*"}
        self.store = os.path.join(self.home, "models")

    def start(self, *arguments, **environment):
        return subprocess.Popen([sys.modules["helpers"].DOPPLER, *arguments], env={**self.environment, **environment},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_doppler(self, *arguments, **environment):
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def succeed(self, *arguments, **environment):
        code, out, err = self.run_doppler(*arguments, **environment)
        self.assertEqual(code, 0, err)
        return json.loads(out) if "--json" in arguments else out

    def fail_with(self, sentence, *arguments, **environment):
        """The program ends with 1 and exactly one sentence, which matches."""
        code, _, err = self.run_doppler(*arguments, **environment)
        self.assertEqual(code, 1, err)
        self.assertRegex(err, sentence)
        self.assertNotIn("terminate", err)
        return err

    def stored(self, name, file):
        with open(os.path.join(self.store, name, file), "rb") as opened:
            return opened.read()

    def assert_nothing_half(self):
        """No folder under a model's name is without all its files, and unfinished ones hold no model's file name."""
        for name in os.listdir(self.store) if os.path.isdir(self.store) else []:
            folder = os.path.join(self.store, name)
            if name.startswith("."):
                continue
            files = set(os.listdir(folder))
            if name.endswith(".part"):
                if "doppler.json" not in files:
                    self.assertFalse([f for f in files if f.endswith(".gguf")], files)
            else:
                self.assertIn("doppler.json", files)
                with open(os.path.join(folder, "doppler.json"), encoding="utf-8") as record:
                    for entry in json.load(record)["files"]:
                        self.assertEqual(os.path.getsize(os.path.join(folder, entry["file"])), entry["bytes"])
