"""A file of requests answered by several models at once, with Ray Data: each actor has a `doppler serve` of its own and
asks it many requests at a time. Lines in and out are those of OpenAI's batches, as of `doppler batch`; without Ray, and
on one machine, that is simpler and as fast.
  pip install "ray[data]"
  python3 batch.py IN.jsonl OUT_FOLDER [--actors 2] [--gpus-each 0] -- doppler -m MODEL [flags of doppler serve]"""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import ray

from replica import Doppler

AT_A_TIME = 32  # requests of an actor that are under way together


class Answer:
    def __init__(self, command):
        self.doppler = Doppler(command)
        self.pool = ThreadPoolExecutor(AT_A_TIME)

    def __call__(self, rows):
        return {"line": list(self.pool.map(self.answer, rows["text"]))}

    def answer(self, text):
        line = json.loads(text)
        body = self.doppler.ask(line["url"], line["body"])
        failed = body.get("error")
        return json.dumps({"custom_id": line["custom_id"], "response": None if failed else {"status_code": 200, "body": body},
                           "error": failed})


def answer_file(source, folder, command, actors=2, gpus_each=0):
    lines = ray.data.read_text(source)
    answers = lines.map_batches(Answer, fn_constructor_args=[command], batch_size=AT_A_TIME,
                                compute=ray.data.ActorPoolStrategy(size=actors), num_gpus=gpus_each, num_cpus=1)
    os.makedirs(folder)
    with open(os.path.join(folder, "answers.jsonl"), "w", encoding="utf-8") as out:
        for row in answers.iter_rows():
            out.write(row["line"] + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("folder")
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--gpus-each", type=float, default=0)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))  # for the actors
    answer_file(os.path.abspath(arguments.source), arguments.folder, arguments.command, arguments.actors, arguments.gpus_each)


if __name__ == "__main__":
    sys.exit(main())
