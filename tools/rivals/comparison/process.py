"""One harness as a process: a line in, a JSON line out (harness/README.md). Its standard error goes to a log."""

import json
import os
import queue
import subprocess
import threading
import time

QUIT_S = 20


class Failed(Exception):
    """A failure of an engine, as a sentence for the record."""


class Harness:
    def __init__(self, command, environment, log):
        self.started = time.monotonic()
        self.log = open(log, "ab")  # noqa: SIM115 - closed by quit()
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                            env={**os.environ, **environment})
        except OSError as error:
            self.log.close()
            raise Failed(f"Its harness does not start: {error.strerror}; `rivals install` makes it.") from None
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def ask(self, words, timeout):
        """The answer as an object; its own failures and a harness that is gone or silent raise Failed."""
        try:
            self.process.stdin.write("\t".join(words).encode() + b"\n")
            self.process.stdin.flush()
            line = self.lines.get(timeout=timeout)
        except queue.Empty:
            self.process.kill()
            raise Failed(f"No answer to \"{words[0]}\" within {timeout} s.") from None
        except OSError:
            line = None
        if line is None:
            raise Failed(f"Its harness ended with code {self.process.wait()} at \"{words[0]}\".")
        try:
            answer = json.loads(line.decode(errors="replace"))
        except ValueError:
            raise Failed(f"Its harness wrote {line[:80]!r}, which is not JSON.") from None
        if not answer.get("ok"):
            raise Failed(answer.get("error", "no reason given").splitlines()[0])
        return answer

    def load(self, values, timeout):
        answer = self.ask(["load", *(f"{key}={value}" for key, value in values.items())], timeout)
        answer["from_start"] = time.monotonic() - self.started
        return answer

    def generate(self, count, prompts, timeout):
        """prompts: lists of tokens, or texts for an engine that takes no tokens."""
        words = [prompt if isinstance(prompt, str) else ",".join(map(str, prompt)) for prompt in prompts]
        return self.ask(["generate", str(count), *words], timeout)

    def quit(self):
        try:
            self.process.stdin.write(b"quit\n")
            self.process.stdin.close()
            self.process.wait(QUIT_S)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.reader.join(QUIT_S)
        self.process.stdout.close()
        self.log.close()
