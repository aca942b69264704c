"""The command line: `rivals VERB`. A verb is a function of its arguments; it prints for people, or JSON with --json."""

import argparse
import json
import os
import pathlib
import shlex
import sys

from comparison import install, records, registry, report, runner, schema, squeeze
from comparison.process import Failed


def emit(arguments, value, lines):
    print(json.dumps(value, indent=2) if arguments.json else "\n".join(lines))


def rows(table):
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in table]


def list_verb(arguments):
    found = []
    for engine in registry.engines().values():
        found.append({"name": engine["name"], "version": engine["version"], "surfaces": engine["surfaces"],
                      "status": engine["status"], "installed": install.is_installed(engine, arguments.folder),
                      "reason": engine.get("reason", "")})
    table = [("ENGINE", "VERSION", "SURFACES", "STATUS", "INSTALLED", "WHY")]
    table += [(row["name"], row["version"], ",".join(row["surfaces"]), row["status"], "yes" if row["installed"] else "no",
               row["reason"]) for row in found]
    emit(arguments, found, rows(table))


def validate_verb(arguments):
    faults = registry.every_fault()
    for path in arguments.records:
        try:
            records.read(path)
        except schema.Invalid as error:
            faults.append(str(error))
    count = len(registry.engines()) if not faults else 0
    emit(arguments, {"faults": faults}, faults or [f"{count} engines and {len(arguments.records)} records are valid."])
    return 1 if faults else 0


def capabilities_verb(arguments):
    engines = registry.engines()
    meanings = registry.capabilities()
    table = {name: {engine: engines[engine]["capabilities"][name] for engine in engines} for name in meanings}
    lines = ["| | " + " | ".join(engines) + " |", "|---" * (len(engines) + 1) + "|"]
    lines += [f"| {meaning} | " + " | ".join(table[name][engine]["has"] for engine in engines) + " |"
              for name, meaning in meanings.items()]
    emit(arguments, table, lines)


def gap_verb(arguments):
    engines = registry.engines()
    base, target = (registry.find(engines, name, "engine") for name in (arguments.base, arguments.target))
    found = registry.gap(base, target)
    lines = [f"What {target['name']} has and {base['name']} has not, or only in part:"]
    lines += [f"- {name} ({registry.capabilities()[name]}): {theirs}, here {ours}. {evidence}"
              for name, ours, theirs, evidence in found] or ["- nothing"]
    emit(arguments, [dict(zip(("capability", "base", "target", "evidence"), row)) for row in found], lines)


def install_verb(arguments):
    engines = registry.engines()
    for name in arguments.names:
        engine = registry.find(engines, name, "engine")
        install.install(engine, arguments.folder, arguments.doppler)
        print(f"{name} {engine['version']} is installed.", file=sys.stderr)


def settings_of(words, separator):
    """ENGINE.KEY=VALUE, as engine -> key -> value."""
    out = {}
    engines = sorted(registry.engines(), key=len, reverse=True)  # names have dots themselves: the longest one wins
    for word in words:
        left, equals, value = word.partition("=")
        engine = next((name for name in engines if left.startswith(name + separator)), None)
        if not equals or not engine:
            raise registry.Unknown(f"\"{word}\" is not ENGINE{separator}KEY=VALUE with an engine of `rivals list`.")
        out.setdefault(engine, {})[left[len(engine) + 1:]] = value
    return out


def spelled(words):
    """The command as another person would type it: where engines are installed, models lie and records go is theirs to
    say."""
    out, before = [], ""
    for word in words:
        if before == "--model":
            word = pathlib.PurePath(word).name
        if before not in ("--folder", "--save") and word not in ("--folder", "--save"):
            out.append(word)
        before = word
    return "tools/rivals/rivals " + shlex.join(out)


def run_verb(arguments):
    profile = registry.find(registry.profiles(), arguments.profile, "profile")
    if arguments.intent not in profile["intents"]:
        allowed = ", ".join(profile["intents"])
        raise registry.Unknown(f"The profile {profile['name']} may serve {allowed}, not {arguments.intent}.")
    if not arguments.model.is_file():
        raise registry.Unknown(f"The model {arguments.model} is not a file.")
    if arguments.save:  # known before anything is measured
        records.new_path(arguments.save, arguments.model.name, arguments.mode, profile["name"])
    engines = runner.chosen_engines(arguments.engine, arguments.folder)
    if not engines:
        raise registry.Unknown("No engine is installed; `rivals install NAME` does that.")
    plan = runner.Plan(
        engines=engines, workloads=registry.chosen_workloads(arguments.workload or ["small"]), model=arguments.model,
        folder=arguments.folder.resolve(), mode=arguments.mode, profile=profile["name"], intent=arguments.intent,
        rounds=arguments.rounds, warmups=arguments.warmups, apart=arguments.apart, timeout=arguments.timeout,
        budget=arguments.budget, warmup_tokens=arguments.warmup_tokens, together=arguments.together,
        rounds_of=settings_of(arguments.rounds_of, "."), label=arguments.label, machine=arguments.machine,
        command=spelled(arguments.words), options=settings_of(arguments.option, "."),
        environment=settings_of(arguments.env, "."))
    record = runner.Runner(plan, lambda words: print(words, file=sys.stderr, flush=True)).run()
    keep(arguments, record)
    return 0 if record["results"] else 1


def squeeze_verb(arguments):
    if not arguments.model.is_file():
        raise registry.Unknown(f"The model {arguments.model} is not a file.")
    if arguments.save:
        records.new_path(arguments.save, arguments.model.name, "compute", squeeze.PROFILE)
    program = arguments.program or arguments.folder / "doppler-native" / "bin" / "doppler"
    story = squeeze.run(program, arguments.model, arguments.flags)
    keep(arguments, squeeze.record(story, arguments.model, spelled(arguments.words), arguments.label))


def keep(arguments, record):
    """Checks a new record, saves it where asked, and shows it."""
    schema.check(record, "record", "the record")
    if arguments.save:
        print(f"Saved: {records.save(record, arguments.save)}", file=sys.stderr)
    print(json.dumps(record, indent=2) if arguments.json else report.markdown([record], []))


def report_verb(arguments):
    found = [records.read(path) for path in arguments.records]
    found.sort(key=lambda record: (record["model"]["name"], record["mode"] != "compute", record["mode"], record["profile"]))
    if arguments.json:
        print(json.dumps(found, indent=2))
    elif arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        print("\n".join(report.write(found, arguments.output)))
    else:
        print(report.markdown(found, []))


def check_verb(arguments):
    new = records.read(arguments.record)
    old = records.read(arguments.against) if arguments.against.is_file() else records.last_like(new, arguments.against)
    if old is None:
        emit(arguments, {"against": None, "changes": []}, [f"No earlier record of {new['machine']['device']} is comparable."])
        return 0
    if records.key(old) != records.key(new):
        raise registry.Unknown("The two records differ in device, cores, model, mode, profile or intent; ratios would mean nothing.")
    found = records.changes(new, old, arguments.threshold)
    table = [("ENGINE", "WORKLOAD", "FIGURE", "RATIO", "ALLOWED LOSS", "")]
    table += [(row["engine"], row["workload"], row["figure"], f"{row['ratio']:.3f}", f"{row['allowed_loss']:.3f}",
               "WORSE" if row["worse"] else "") for row in found]
    emit(arguments, {"against": old["date"], "changes": found}, [f"Against {old['date']}, {old['commit']}:", *rows(table)])
    return 1 if any(row["worse"] for row in found) else 0


def parser():
    top = argparse.ArgumentParser(prog="rivals", description="Engines compared by one command: docs/howto/rivals.md.")
    verbs = top.add_subparsers(dest="verb", required=True)
    path = pathlib.Path

    def verb(name, run, words):
        made = verbs.add_parser(name, help=words, description=words)
        made.set_defaults(run=run)
        made.add_argument("--json", action="store_true", help="JSON instead of text")
        made.add_argument("--folder", type=path, default=install.default_folder(), metavar="FOLDER",
                          help="where engines are installed (default: DOPPLER_RIVALS, or ~/.cache/doppler/rivals)")
        return made

    verb("list", list_verb, "The registry: versions, surfaces, what runs and why not.")
    made = verb("validate", validate_verb, "Checks the registry, and records, against the schemas.")
    made.add_argument("records", nargs="*", type=path)
    verb("capabilities", capabilities_verb, "A table of what each engine can do; --json adds the evidence.")
    made = verb("gap", gap_verb, "What one engine can do and another cannot.")
    made.add_argument("--base", required=True)
    made.add_argument("--target", required=True)
    made = verb("install", install_verb, "Installs engines at their pinned versions and makes their harnesses.")
    made.add_argument("names", nargs="+", metavar="NAME")
    made.add_argument("--doppler", metavar="BUILD", help="doppler-native: the build folder it is taken from")
    made = verb("run", run_verb, "Measures engines by turns and prints the record.")
    made.add_argument("--engine", action="append", default=[], metavar="NAME", help="may be repeated; default: all installed")
    made.add_argument("--model", type=path, default=path("models/storyteller.gguf"))
    made.add_argument("--workload", action="append", metavar="NAME", help="a workload or a set; may be repeated (small)")
    made.add_argument("--mode", choices=tuple(report.MODES), default="compute")
    made.add_argument("--profile", default="parity")
    made.add_argument("--intent", choices=("calibrate", "investigate"), default="calibrate")
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--warmups", type=int, default=1)
    made.add_argument("--rounds-of", action="append", default=[], metavar="ENGINE.WORKLOAD=N", help="fewer rounds, for a slow one")
    made.add_argument("--warmup-tokens", type=int, default=0, metavar="N", help="generated in a warm-up (0: as in a round)")
    made.add_argument("--together", action="store_true", help="load and warm up engines at the same time: for GPUs")
    made.add_argument("--apart", action="store_true", help="one engine in memory at a time, loaded anew each round")
    made.add_argument("--timeout", type=int, default=600, metavar="SECONDS", help="for one answer of an engine")
    made.add_argument("--budget", type=int, default=0, metavar="SECONDS", help="then no further round begins (0: no limit)")
    made.add_argument("--option", action="append", default=[], metavar="ENGINE.KEY=VALUE", help="above the profile's options")
    made.add_argument("--env", action="append", default=[], metavar="ENGINE.NAME=VALUE", help="of the engine's process")
    made.add_argument("--label", default="", help="a sentence above the table, such as what the run is not")
    made.add_argument("--machine", default="", help="the machine in words")
    made.add_argument("--save", type=path, metavar="FOLDER", help="keep the record there")
    made = verb("squeeze", squeeze_verb, "Runs `doppler squeeze` and makes a record of its story: before and after tuning.")
    made.add_argument("--model", type=path, default=path("models/storyteller.gguf"))
    made.add_argument("--program", type=path, metavar="FILE", help="the doppler that is run (default: the installed one)")
    made.add_argument("--label", default="", help="a sentence above the table, such as what the run is not")
    made.add_argument("--save", type=path, metavar="FOLDER", help="keep the record there")
    made.add_argument("flags", nargs="*", metavar="-- FLAG", help="more flags of doppler squeeze, behind --")
    made = verb("report", report_verb, "Records as Markdown and plots.")
    made.add_argument("records", nargs="+", type=path)
    made.add_argument("--output", type=path, metavar="FOLDER", help="write README.md and SVG files there")
    made = verb("check", check_verb, "A record against the last one of the same device; exits with 1 where it got worse.")
    made.add_argument("record", type=path)
    made.add_argument("--against", type=path, default=path("docs/results"), metavar="RECORD|FOLDER")
    made.add_argument("--threshold", type=float, default=records.THRESHOLD, help="least loss that counts (0.05)")
    return top


def main(words):
    arguments = parser().parse_args(words)
    arguments.words = words
    try:
        return arguments.run(arguments) or 0
    except (registry.Unknown, schema.Invalid, install.Impossible, Failed) as error:
        print(f"rivals: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
