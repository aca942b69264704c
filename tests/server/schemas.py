"""JSON schemas answered by the shipped model at temperature 1: each answer must be valid, each keyword that cannot be
honoured be refused by name. Not part of the usual tests: it takes minutes, and the package jsonschema to judge.
  python3 schemas.py --doppler PROGRAM [--rounds 1] [--clients 8] [--only NAME] [--save FILE]
The schemas are data: schemas.json, "valid" by name and "refused" by keyword. A round asks for each once, with other
seeds."""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from figures import add_arguments, finish, metric, wait_until_ready
from served import Served

FLAGS = ("--ctx", "2048", "--parallel", "8", "--cache-tokens", "16384")
MOST_TOKENS = 1500


def ask(served, schema, seed, most_tokens=MOST_TOKENS, **fields):
    body = {"messages": [{"role": "user", "content": "Tell me of the fox as JSON."}], "temperature": 1, "seed": seed,
            "max_tokens": most_tokens, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}, **fields}
    status, _, answer = served.post("/v1/chat/completions", body)
    return status, answer


def judge(validator, served, name, schema, seed):
    """None, or what is wrong."""
    status, answer = ask(served, schema, seed)
    if status != 200:
        return f"{name}: {answer['error']['message']}", ""
    choice = answer["choices"][0]
    text = choice["message"]["content"]
    if choice["finish_reason"] != "stop":
        return f"{name}, seed {seed}: it did not end in {MOST_TOKENS} tokens: {text[:80]!r}...", text
    try:
        problem = next(validator(schema).iter_errors(json.loads(text)), None)
    except ValueError as error:
        return f"{name}, seed {seed}: {error}: {text[:200]!r}", text
    return (f"{name}, seed {seed}: {problem.message}" if problem else None), text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--only", help="one schema by name; its answers are printed")
    arguments = parser.parse_args()
    try:
        import jsonschema  # pylint: disable=import-outside-toplevel
    except ImportError:
        sys.exit("The package jsonschema is needed: pip install jsonschema")
    def validator(schema):
        return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    with open(os.path.join(os.path.dirname(__file__), "schemas.json"), encoding="utf-8") as file:
        data = json.load(file)
    valid = {name: schema for name, schema in data["valid"].items() if arguments.only in (None, name)}
    served = Served(arguments.doppler, *FLAGS)
    wait_until_ready(served)
    work = [(name, schema, seed) for seed in range(arguments.rounds) for name, schema in valid.items()]
    with ThreadPoolExecutor(arguments.clients) as pool:
        judged = list(pool.map(lambda item: judge(validator, served, *item), work))
    if arguments.only:
        print("\n".join(text for _, text in judged))
    failures = [problem for problem, _ in judged if problem]
    for keyword, schema in data["refused"].items():
        status, answer = ask(served, schema, 0)
        if status != 400 or keyword not in answer["error"]["message"]:
            failures.append(f"{keyword} is not refused by name: {status} {json.dumps(answer)[:200]}")
    page = served.ask("GET", "/metrics")[2]
    figures = {"schemas": len(valid), "answers": len(judged), "refused_keywords": len(data["refused"]),
               "failures": len(failures), "first_failures": failures[:20],
               "generated_tokens": int(metric(page, "vllm:generation_tokens_total")),
               "forced_tokens": int(metric(page, "doppler:forced_tokens_total"))}
    return finish(arguments, "schemas", served, not failures, figures)


if __name__ == "__main__":
    sys.exit(main())
