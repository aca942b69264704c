"""The nightly length of fuzzing, as one command: every target of a sanitised build for so many seconds, one after the
other. Inputs that break a target are kept in --found and fail the run. With --corpus a run goes on from the inputs of
the last one, and --save adds its seconds and runs to those that FILE holds, so that a night can come in parts.
  cmake --preset asan && ninja -C build/asan doppler_fuzzers
  python3 tests/fuzz_long.py --build build/asan [--seconds 3600] [--jobs 1] [--only NAME]... [--found FOLDER] [--corpus
  FOLDER]
    [--save FILE]"""

import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed

ROOT = pathlib.Path(__file__).resolve().parent.parent
GRACE_SECONDS = 120  # after the time that libFuzzer has: reading the corpus, the last input


def targets(build):
    """Name -> (program, corpus), as ctest has them (cmake/DopplerTargets.cmake)."""
    listed = subprocess.run(["ctest", "--test-dir", build, "-L", "^fuzz$", "--show-only=json-v1"], capture_output=True, text=True,
                            check=True).stdout
    out = {}
    for test in json.loads(listed)["tests"]:
        if "command" not in test:
            sys.exit(f"fuzz_long: {test['name']} is not built; ninja -C {build} doppler_fuzzers does that.")
        out[test["name"].removesuffix("_corpus")] = (test["command"][0], test["command"][-1])
    return out


def fuzz(name, program, corpus, seconds, found, kept):
    """One target's row. Inputs that reach code that no earlier one reached go to the folder kept/name."""
    before = set(found.iterdir())
    with tempfile.TemporaryDirectory() as temporary:
        scratch = (kept or pathlib.Path(temporary)) / name
        scratch.mkdir(parents=True, exist_ok=True)
        known = len(list(scratch.iterdir()))
        words = [program, f"-max_total_time={seconds}", "-print_final_stats=1", "-timeout=25", "-rss_limit_mb=2048",
                 f"-artifact_prefix={found}/{name}.", scratch, corpus]
        try:
            done = subprocess.run(words, capture_output=True, text=True, errors="replace", cwd=ROOT, timeout=seconds + GRACE_SECONDS)
            said, code = done.stderr, done.returncode
        except subprocess.TimeoutExpired:
            said, code = "", "it did not end"
        new = len(list(scratch.iterdir())) - known
    coverage = re.findall(r"\bcov: (\d+)", said)
    runs = re.search(r"stat::number_of_executed_units: *(\d+)", said)
    broke = sorted(path.name for path in set(found.iterdir()) - before if path.name.startswith(name + "."))
    passed = code == 0 and not broke
    row = {"target": name, "seconds": seconds, "runs": int(runs[1]) if runs else 0, "coverage": int(coverage[-1]) if coverage else 0,
           "new_inputs": new, "passed": passed, "broken_by": broke}
    print(f"{'ok    ' if passed else 'FAILED'} {name}: {row['runs']} runs, coverage {row['coverage']}, {new} new inputs"
          + ("" if passed else f"; {', '.join(broke) or code}\n{said[-2000:]}"), flush=True)
    return row


def add(record, part, row):
    """Counts a target's row, and the part it belongs to, into a record."""
    if part not in record["parts"]:
        record["parts"].append(part)
    old = next((known for known in record["targets"] if known["target"] == row["target"]), None)
    if old is None:
        record["targets"].append(row)
        return
    for key in ("seconds", "runs", "new_inputs"):
        old[key] += row[key]
    old["coverage"] = max(old["coverage"], row["coverage"])
    old["passed"] = old["passed"] and row["passed"]
    old["broken_by"] = sorted({*old["broken_by"], *row["broken_by"]})


def commit():
    said = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty=+changes", "--abbrev=12", "--exclude=*"], capture_output=True,
                          text=True)
    return said.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/asan")
    parser.add_argument("--seconds", type=int, default=3600, help="of each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--found", type=pathlib.Path, default=pathlib.Path("build/fuzz"), metavar="FOLDER")
    parser.add_argument("--corpus", type=pathlib.Path, metavar="FOLDER", help="keeps what is new, a folder a target")
    parser.add_argument("--label", default="", help="the machine in words")
    parser.add_argument("--save", type=pathlib.Path, metavar="FILE", help="the record, added to if there is one")
    arguments = parser.parse_args()
    known = targets(arguments.build)
    for name in arguments.only:
        if name not in known:
            sys.exit(f"fuzz_long: There is no target \"{name}\"; there are {', '.join(known)}.")
    arguments.found.mkdir(parents=True, exist_ok=True)
    found = arguments.found.resolve()
    if arguments.corpus:
        arguments.corpus = arguments.corpus.resolve()
    began = datetime.datetime.now(datetime.timezone.utc)
    part = {"commit": commit(), "date": began.strftime("%Y-%m-%dT%H:%M:%SZ"), "label": arguments.label,
            "seconds_a_target": arguments.seconds, "targets_at_a_time": arguments.jobs}
    record = {"kind": "fuzz", "parts": [], "targets": []}
    if arguments.save and arguments.save.exists():
        record = json.loads(arguments.save.read_text())
        if "parts" not in record:
            sys.exit(f"fuzz_long: {arguments.save} is no record that can be added to: it does not say its parts. Name another file.")
    rows = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        running = [pool.submit(fuzz, name, *program, arguments.seconds, found, arguments.corpus)
                   for name, program in known.items() if not arguments.only or name in arguments.only]
        for done in as_completed(running):
            rows.append(done.result())
            add(record, part, dict(rows[-1]))
            if arguments.save:  # after every target: a run that is stopped keeps what it has
                arguments.save.parent.mkdir(parents=True, exist_ok=True)
                arguments.save.write_text(json.dumps(record, indent=2) + "\n")
    failed = sum(not row["passed"] for row in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
