"""The examples with Ray (examples/ray), with two replicas of the shipped model on this machine. Not part of the usual
tests: it needs the packages ray[serve] and ray[data].
  python3 ray_test.py --doppler PROGRAM [--port 8123]"""

import argparse
import http.client
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples", "ray")
MODEL = os.path.join(HERE, "..", "..", "models", "storyteller.gguf")


class Asker:
    def __init__(self, port):
        self.port = port

    def __call__(self, body, method="POST", path="/v1/completions"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.getheader("X-Replica"), answer.read().decode()


def check_replicas(port):
    ask = Asker(port)
    # Beginnings: each stays with the replica that has it; both replicas get some.
    stories = [f"Story {i}. " + "Once upon a time there was a fox. " * 20 for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        first = list(pool.map(lambda text: ask({"prompt": text, "max_tokens": 2}), stories))
    assert all(status == 200 for status, _, _ in first), first
    assert {replica for _, replica, _ in first} == {"0", "1"}, [replica for _, replica, _ in first]
    for text, (_, replica, _) in zip(stories, first):
        status, again, answer = ask({"prompt": text + "It met", "max_tokens": 2})
        assert (status, again) == (200, replica), (status, again, replica)
        assert json.loads(answer)["usage"]["prompt_tokens_details"]["cached_tokens"] > 0, answer
    # Streams and errors come through.
    _, _, text = ask({"prompt": "The fox", "max_tokens": 3, "stream": True})
    assert text.endswith("data: [DONE]\n\n"), text
    assert ask({"prompt": "x", "temperature": "hot"})[0] == 400
    assert ask(None, "GET", "/v1/models")[0] == 200


def check_recovery(port, pid):
    """A replica whose process is killed is replaced."""
    ask = Asker(port)
    os.kill(pid, 9)
    end = time.time() + 120
    good = 0
    while good < 8 and time.time() < end:
        good = good + 1 if ask({"prompt": "The fox", "max_tokens": 1})[0] == 200 else 0
        time.sleep(0.5)
    assert good == 8, "a killed replica was not replaced"


def check_batch(answer_file, command):
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "in.jsonl")
        with open(source, "w", encoding="utf-8") as file:
            for i in range(40):
                body = {"prompt": f"The fox {i}", "max_tokens": 2, "temperature": "hot" if i == 7 else 0}
                file.write(json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions", "body": body}) + "\n")
        answer_file(source, os.path.join(folder, "out"), command)
        with open(os.path.join(folder, "out", "answers.jsonl"), encoding="utf-8") as file:
            lines = {line["custom_id"]: line for line in map(json.loads, file)}
    assert len(lines) == 40 and [i for i, line in lines.items() if line["error"]] == ["7"], lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--doppler", required=True)
    parser.add_argument("--port", type=int, default=8123)
    arguments = parser.parse_args()
    sys.path.insert(0, EXAMPLES)
    os.environ["PYTHONPATH"] = os.path.abspath(EXAMPLES)
    command = [os.path.abspath(arguments.doppler), "-m", os.path.abspath(MODEL), "--ctx", "512", "--parallel", "4"]
    # pylint: disable=import-outside-toplevel,import-error
    import ray
    from ray import serve as ray_serve
    import batch
    import serve
    ray.init(num_cpus=4, include_dashboard=False)
    ray_serve.start(http_options={"port": arguments.port})
    ray_serve.run(serve.application(command, 2))
    check_replicas(arguments.port)
    print("replicas: streams, errors and beginnings are where they should be", flush=True)
    served = [pid for pid in all_processes() if is_served(pid, arguments.doppler) and descends_from(pid, os.getpid())]
    check_recovery(arguments.port, served[0])
    print("replicas: one that was killed was replaced", flush=True)
    ray_serve.shutdown()
    check_batch(batch.answer_file, command)
    print("batch: 40 lines by two actors", flush=True)
    ray.shutdown()


def all_processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def is_served(pid, program):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return False
    return words[:2] == [os.path.abspath(program).encode(), b"serve"]


def descends_from(pid, ancestor):
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                pid = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


if __name__ == "__main__":
    sys.exit(main())
