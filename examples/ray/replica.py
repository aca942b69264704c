"""A `doppler serve` in a process of its own, for the examples with Ray: started on a free port of this machine, ended
with its owner. Standard library only."""

import atexit
import json
import subprocess
import time
import urllib.error
import urllib.request


class Doppler:
    """command: the program and flags of `doppler serve`, such as ["doppler", "-m", "model.gguf"]."""

    def __init__(self, command):
        program, *flags = command
        self.process = subprocess.Popen([program, "serve", "--port", "0", "--json", *flags], stdout=subprocess.PIPE,
                                        text=True)
        atexit.register(self.process.kill)
        first = self.process.stdout.readline()
        if not first:
            raise RuntimeError(f"{program} serve ended with status {self.process.wait()}")
        self.url = json.loads(first)["url"]
        # Its access log must be read, or it would wait for a reader one day.
        subprocess.Popen(["cat"], stdin=self.process.stdout, stdout=subprocess.DEVNULL)
        while not self.is_ready():
            time.sleep(0.2)

    def is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"doppler serve ended with status {self.process.returncode}")
        try:
            with urllib.request.urlopen(self.url + "/health", timeout=10) as answer:
                return answer.status == 200
        except urllib.error.HTTPError:
            return False

    def ask(self, path, body):
        """A body of OpenAI's API and its answer; an error of the server has the field "error"."""
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def end(self):
        self.process.terminate()
        self.process.wait()
