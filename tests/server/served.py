"""A `doppler serve` for tests: started with a chat template that knows tools, asked over plain HTTP. Standard library
only."""

import atexit
import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
import threading

# Shows tools in the way of Hermes, so that calls are read in that way.
TEMPLATE = """{% for message in messages %}{{ message.role }}: {{ message.content }}
{% endfor %}{% if tools %}{{ tools | tojson }} are called so: <tool_call>
{% endif %}"""


class Served:
    timeout = 60  # seconds without a byte of an answer

    def __init__(self, doppler, *flags, model="models/storyteller.gguf", template=TEMPLATE):
        """template: None: the model's own."""
        self.folder = tempfile.TemporaryDirectory(prefix="doppler-serve-")
        if template:
            path = os.path.join(self.folder.name, "tools.jinja")
            with open(path, "w", encoding="utf-8") as file:
                file.write(template)
            flags = ("--template", path, *flags)
        self.log = open(os.path.join(self.folder.name, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [doppler, "serve", "--port", "0", "--json", "--log-format", "json", "-m", model, *flags],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        atexit.register(self.process.kill)  # a test that fails leaves no process
        self.port = json.loads(self.process.stdout.readline())["port"]
        self.lines = []
        # Read at once, or the server would wait for its reader.
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self.reader.start()
        self.url = f"http://127.0.0.1:{self.port}"

    def end(self, number=signal.SIGTERM):
        """The lines of its access log."""
        self.process.send_signal(number)
        self.process.wait(timeout=60)
        self.reader.join()
        self.process.stdout.close()
        self.log.close()
        self.folder.cleanup()
        return [json.loads(line) for line in self.lines]

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)

    def ask(self, method, path, body=None, **fields):
        """Status, header fields, body (parsed if it is JSON)."""
        connection = self.connect()
        data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        connection.request(method, path, data, {name.replace("_", "-"): value for name, value in fields.items()})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        is_json = answer.getheader("Content-Type") == "application/json"
        return answer.status, dict(answer.getheaders()), json.loads(text) if is_json else text

    def post(self, path, body, **fields):
        return self.ask("POST", path, body, **fields)

    def events(self, path, body):
        """The data of a stream's events; "[DONE]" is one."""
        _, fields, text = self.post(path, body)
        assert fields["Content-Type"] == "text/event-stream", text
        return [data if data == "[DONE]" else json.loads(data) for data in re.findall(r"^data: (.*)$", text, re.M)]
