"""An engine of known speed for rivals_test.py: it speaks harness/README.md's lines and computes nothing."""

import json
import sys

arguments = sys.argv[1:]
loaded = []
speed = float(arguments[arguments.index("--speed") + 1]) if "--speed" in arguments else 1.0


def answer(words):
    if "--fail" in arguments:
        return {"ok": False, "error": "It cannot read this."}
    if words[0] == "load":
        if "--once" in arguments and loaded:
            return {"ok": False, "error": "It was loaded before."}
        loaded.append(words)
        return {"ok": True, "seconds": 0.5 / speed, "version": "1", "device": "test", "vocabulary": 8192,
                "settings": {"graph": "int4, of a file", "context": dict(word.split("=", 1) for word in words[1:])["context"]}}
    count, prompts = int(words[1]), [list(map(int, word.split(","))) for word in words[2:]]
    ttft = len(prompts[0]) / 800 / speed  # seconds: 800 prompt tokens a second, 100 generated ones
    streams = []
    for prompt in prompts:
        tokens = [prompt[0] + i for i in range(count)]
        if "--differ" in arguments:
            tokens[-1] = 0
        decode = (count - 1) / 100 / speed
        streams.append({"ttft": ttft, "decode": decode, "intervals": count - 1, "tokens": tokens, "text": ""})
    prefill = ttft * len(prompts)
    return {"ok": True, "seconds": prefill + (count - 1) / 100 / speed, "prefill": prefill, "streams": streams}


for line in sys.stdin:
    if line.strip() == "quit":
        break
    print(json.dumps(answer(line.strip().split("\t"))), flush=True)
