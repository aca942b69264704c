"""Schemas of MaskBench answered by the shipped model at temperature 1: how many the server refuses, and whether the
answers to the others are valid. Not part of the usual tests: it takes minutes, the data, and the package jsonschema.
  git clone https://github.com/guidance-ai/jsonschemabench
  python3 maskbench.py --doppler PROGRAM --data jsonschemabench/maskbench/data [--each 23] [--only-refused] [--save FILE]
It takes --each schemas of each of the ten sets of JSONSchemaBench, evenly spaced by name: 230 by default. It fails if
an answer is invalid, or if more than --most-refused are refused."""

import argparse
import json
import os
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from figures import add_arguments, finish, wait_until_ready
from schemas import FLAGS, ask
from served import Served

SETS = ("Github_trivial", "Github_easy", "Github_medium", "Github_hard", "Github_ultra", "Glaiveai2K", "Kubernetes",
        "JsonSchemaStore", "Snowplow", "WashingtonPost")


def selected(folder, each):
    """The names of the files."""
    names = []
    for name_of_set in SETS:
        of_set = sorted(name for name in os.listdir(folder) if name.startswith(name_of_set + "---"))
        taken = min(each, len(of_set))
        names += [of_set[i * len(of_set) // taken] for i in range(taken)]
    return names


def validator(schema):
    import jsonschema  # pylint: disable=import-outside-toplevel
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def endings(served):
    """A bias to the tokens that end texts, lists and objects: this model writes long ones."""
    tokens = [served.post("/tokenize", {"content": text})[2]["tokens"] for text in ('"', '",', '"}', "]", "}")]
    return {str(ids[0]): 10 for ids in tokens if len(ids) == 1}


def judge(served, schema, most_tokens, bias):
    """The outcome, and details of it."""
    status, answer = ask(served, schema, 0, most_tokens, logit_bias=bias)
    if status == 400:
        return "refused", answer["error"]["message"]
    if status != 200:
        return "failed", f"{status} {json.dumps(answer)[:200]}"
    choice = answer["choices"][0]
    if choice["finish_reason"] != "stop":
        return "cut off", ""
    try:
        problem = next(validator(schema).iter_errors(json.loads(choice["message"]["content"])), None)
    except ValueError as error:
        return "invalid", f"{error}: {choice['message']['content'][:200]}"
    return ("invalid", problem.message[:200]) if problem else ("valid", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--data", required=True, help="the folder maskbench/data of jsonschemabench")
    parser.add_argument("--each", type=int, default=23, help="schemas of each set")
    parser.add_argument("--most-refused", type=int, default=25)
    parser.add_argument("--most-tokens", type=int, default=300, help="of an answer; a longer one is cut off and not judged")
    parser.add_argument("--only-refused", action="store_true", help="answers of one token, which are not judged")
    arguments = parser.parse_args()

    def judged(name):
        with open(os.path.join(arguments.data, name), encoding="utf-8") as file:
            schema = json.load(file)["schema"]
        row = judge(served, schema, 1 if arguments.only_refused else arguments.most_tokens, bias)
        print(name, *row, file=sys.stderr, flush=True)
        return row
    names = selected(arguments.data, arguments.each)
    served = Served(arguments.doppler, *FLAGS)
    wait_until_ready(served)
    bias = endings(served)
    with ThreadPoolExecutor(8) as pool:
        rows = dict(zip(names, pool.map(judged, names)))
    counts = Counter(outcome for outcome, _ in rows.values())
    reasons = Counter(re.split(r" at #|[:;] ", text.removeprefix('Field "response_format": '))[0]
                      for outcome, text in rows.values() if outcome == "refused")
    figures = {"schemas": len(names), **counts, "refused_for": dict(reasons.most_common()),
               "rows": {name: list(row) for name, row in rows.items() if row[0] in ("refused", "failed", "invalid")}}
    passed = counts["refused"] <= arguments.most_refused and not counts["invalid"] and not counts["failed"]
    return finish(arguments, "maskbench", served, passed, figures)


if __name__ == "__main__":
    sys.exit(main())
