"""Runs `doppler squeeze` and makes of its story a record like any other (schemas/record.json): two engines, the tables'
choices and the tuned ones, and under `story` what lies between them. So the regression check, tables and plots serve it
too."""

import json
import re
import subprocess

from comparison import estimates, machine
from comparison.process import Failed

BEFORE, AFTER = "doppler-native.tables", "doppler-native.tuned"
PROFILE = "squeeze"
STORY = ("cadence", "red_flags", "notes", "tuning", "correctness", "commands", "ceilings", "preset")


def run(program, model, flags):
    """The program's JSON. A tuning that failed its check is a story too: the exit code is then 1."""
    words = [str(program), "squeeze", "--json", "--model", str(model), *flags]
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except OSError as error:
        raise Failed(f"{program} does not start: {error.strerror}.") from None
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise Failed(f"doppler squeeze said: {done.stderr.strip()[-400:] or f'nothing, exit code {done.returncode}'}") from None


def workload(test):
    """"pp512 @ d128" -> (prompt, decode, depth); a test of both is prompt and decode."""
    found = re.fullmatch(r"(?:pp(\d+))?\+?(?:tg(\d+))?(?: @ d(\d+))?", test)
    if not found:
        raise Failed(f"doppler squeeze has a test \"{test}\", which is neither ppN nor tgN.")
    return tuple(int(number or 0) for number in found.groups())


def results(story):
    same = story["correctness"]["equal_tokens"] == story["correctness"]["tokens"]
    out = []
    for test in story["tests"]:
        prompt, decode, _ = workload(test["test"])
        figure = "decode_tok_s" if decode and not prompt else "total_tok_s" if decode else "prefill_tok_s"
        for engine, when in ((BEFORE, "before"), (AFTER, "after")):
            is_base = engine == BEFORE
            out.append({
                "engine": engine, "workload": test["test"], "prompt": prompt, "decode": decode, "streams": 1,
                "figures": {figure: estimates.estimate(test[when]["samples"])},
                "output": {"base": BEFORE, "compared": "tokens", "streams": 1, "same": 1 if is_base or same else 0,
                           "first_difference": None if is_base or same else story["correctness"]["equal_tokens"]}})
    return out


def record(story, model, command, label):
    settings = {key: str(value) for key, value in story["settings"].items()}
    device = " ".join(story["device"][key] for key in ("adapter", "provider", "backend"))
    chosen = {key: str(story["cadence"][key]) for key in ("batch", "readback_interval")}
    engines = [{"name": name, "title": title, "version": story["version"], "device": device, "options": options,
                "settings": settings, "environment": {}, "fairness": []}
               for name, title, options in ((BEFORE, "Doppler, its tables' choices", {}), (AFTER, "Doppler, tuned", chosen))]
    if not story["correctness"]["passed"]:
        label = (label + " " if label else "") + "The tuned kernels failed the check of logits and were not kept."
    samples = min(len(test[when]["samples"]) for test in story["tests"] for when in ("before", "after"))
    return {
        "kind": "rivals", "version": 1, "label": label, "intent": story["intent"], "mode": "compute", "profile": PROFILE,
        "date": machine.now(), "commit": story["commit"], "command": command,
        "machine": {**machine.describe("", None), "device": story["device"]["adapter"], "driver": story["device"]["driver"]},
        "model": machine.model_facts(model), "settings": {"rounds": samples, "warmups": 1, "apart": True, "seed": 0},
        "engines": engines, "results": results(story), "failures": [],
        "story": {key: story[key] for key in STORY if key in story}}
