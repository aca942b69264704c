"""The registry: a file an engine (engines/*.json), capabilities, workloads, profiles; read, and checked against
schemas/."""

import json
import pathlib

from comparison import schema

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECIPES = ("doppler", "doppler_web", "llama", "llama_cuda", "npm", "onnxruntime")  # functions of install.py


class Unknown(Exception):
    """A name that the registry does not have."""


def read(path):
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise schema.Invalid(f"{path.name} is not JSON: {error}.") from None


def engines():
    """name -> engine, by name; Doppler's own first, which is the base of tables."""
    found = [read(path) for path in sorted((ROOT / "engines").glob("*.json"))]
    found.sort(key=lambda engine: (engine.get("family") != "doppler", engine.get("name", "")))
    return {engine["name"]: engine for engine in found}


def capabilities():
    """name -> what it means."""
    return read(ROOT / "capabilities.json")["capabilities"]


def workloads():
    """(name -> workload, name of a set -> names)."""
    data = read(ROOT / "workloads.json")
    return {workload["name"]: workload for workload in data["workloads"]}, data["sets"]


def profiles():
    return {profile["name"]: profile for profile in read(ROOT / "profiles.json")["profiles"]}


def find(table, name, kind):
    if name not in table:
        raise Unknown(f"The {kind} \"{name}\" is not known; allowed are {', '.join(table)}.")
    return table[name]


def chosen_workloads(words):
    """Workloads by name or by the name of a set, each once."""
    every, sets = workloads()
    names = []
    for word in words:
        for name in sets.get(word, [word]):
            if name not in names:
                names.append(name)
    return [find({**every, **dict.fromkeys(sets)}, name, "workload") for name in names]


def engine_faults(path):
    """All that is wrong with one file, as sentences."""
    engine = read(path)
    out = schema.faults(engine, schema.load("engine"), path.name)
    if out:
        return out
    if engine["name"] != path.stem:
        out.append(f"{path.name} names its engine {engine['name']!r}; it must be the file's own name.")
    for name in set(engine["capabilities"]) - set(capabilities()):
        out.append(f"{path.name} has the capability {name!r}, which capabilities.json does not have.")
    for name in set(capabilities()) - set(engine["capabilities"]):
        out.append(f"{path.name} does not say whether it has {name!r}.")
    runs = engine["status"] != "does not run"
    if runs != ("harness" in engine) or runs != ("install" in engine):
        out.append(f"{path.name}: an engine that runs needs `harness` and `install`, and one that does not has neither.")
    if engine["status"] != "runs" and not engine.get("reason"):
        out.append(f"{path.name}: the status {engine['status']!r} needs a reason.")
    if runs:
        if engine["install"]["recipe"] not in RECIPES:
            out.append(f"{path.name}: the recipe {engine['install']['recipe']!r} is not one of {', '.join(RECIPES)}.")
        if not (ROOT / "harness" / engine["harness"]["source"]).is_file():
            out.append(f"{path.name}: harness/{engine['harness']['source']} does not exist.")
        for name in set(profiles()) - set(engine["profiles"]):
            out.append(f"{path.name} has no options for the profile {name!r}.")
    return out


def every_fault():
    out = []
    for name in ("capabilities", "workloads", "profiles"):
        out += schema.faults(read(ROOT / f"{name}.json"), schema.load(name), f"{name}.json")
    if out:
        return out
    every, sets = workloads()
    for name, members in sets.items():
        out += [f"workloads.json: the set {name!r} has {member!r}, which is no workload." for member in members
                if member not in every]
    for workload in every.values():
        streams = f"x{workload['streams']}" if workload["streams"] > 1 else ""
        if workload["name"] != f"{workload['prompt']}x{workload['decode']}{streams}":
            out.append(f"workloads.json: {workload['name']!r} is not the name of its own numbers.")
    for path in sorted((ROOT / "engines").glob("*.json")):
        out += engine_faults(path)
    return out


def gap(base, target):
    """The capabilities that `target` has and `base` lacks or has only in part: (capability, base's word, target's word,
    evidence)."""
    rank = {"no": 0, "unknown": 0, "partly": 1, "yes": 2}
    out = []
    for name in capabilities():
        ours, theirs = base["capabilities"][name], target["capabilities"][name]
        if rank[theirs["has"]] > rank[ours["has"]]:
            out.append((name, ours["has"], theirs["has"], theirs["evidence"]))
    return out
