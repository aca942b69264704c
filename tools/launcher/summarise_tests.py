"""Counts single test cases in ctest's JUnit files and prints what failed, what was skipped and why, and a closing
line `N passed, N failed, N skipped`: summarise_tests.py [--require GROUP]... FOLDER... A folder holds test-results.xml
and, since CTest 3.25 writes no labels there, test-list.json of `ctest --show-only=json-v1`. Exit status 1 if something
failed, nothing ran, or a required group has no entry or one that ran no case. A ctest entry counts as the cases its
output reports (GoogleTest, unittest, the story runner), else as one."""

import argparse
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree


def count_cases(output):
    """(passed, failed, skipped) as reported by the test program, or None if it reports no cases."""
    if re.search(r"^\[={10}\] \d+ tests? from .* ran\.", output, re.M):
        def number(word):
            found = re.findall(rf"^\[ +{word} +\] (\d+) tests?[.,]", output, re.M)
            return int(found[-1]) if found else 0
        return number("PASSED"), number("FAILED"), number("SKIPPED")
    match = re.search(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", output, re.M)
    if match:
        return int(match[1]), int(match[2]), int(match[3] or 0)
    match = re.search(r"^Ran (\d+) tests? in ", output, re.M)
    if match:
        verdict = output[match.end():]
        bad = sum(int(n) for n in re.findall(r"(?:failures|errors)=(\d+)", verdict))
        skipped = sum(int(n) for n in re.findall(r"skipped=(\d+)", verdict))
        # Failing sub-tests may outnumber the tests that hold them.
        return max(int(match[1]) - bad - skipped, 0), bad, skipped
    return None


def skip_reasons(output):
    """GoogleTest prints `file:line: Skipped` and the reason on the next line."""
    return re.findall(r"^.*: Skipped\n(.+)$", output, re.M)


def summarise(xml_text):
    """(passed, failed, skipped, names of failed entries, {skip reason: count}, names of entries that ran a case)."""
    passed = failed = skipped = 0
    failed_names, reasons, ran = [], {}, set()
    for case in ElementTree.fromstring(xml_text).iter("testcase"):
        output = case.findtext("system-out") or ""
        status = case.get("status")
        if status in ("disabled", "notrun") and case.find("failure") is None:
            cases = (0, 0, 1)
            reason = (case.find("skipped").get("message") if case.find("skipped") is not None else "") or "not run"
            reasons[reason] = reasons.get(reason, 0) + 1
        else:
            ok = status == "run"
            cases = count_cases(output) or ((1, 0, 0) if ok else (0, 1, 0))
            if not ok and cases[1] == 0:  # a crash, a time-out, or a failure outside the cases
                cases = (cases[0], 1, cases[2])
            if cases[1]:
                failed_names.append(case.get("name"))
            for reason in skip_reasons(output):
                reasons[reason] = reasons.get(reason, 0) + 1
        # The one case of an entry may be in another share than this run's (.ci/run).
        if cases[0] or cases[1] or "Note: This is test shard " in output:
            ran.add(case.get("name"))
        passed, failed, skipped = passed + cases[0], failed + cases[1], skipped + cases[2]
    return passed, failed, skipped, failed_names, reasons, ran


def labels_of(listing):
    """{entry: its labels} of ctest's --show-only=json-v1."""
    return {test["name"]: [label for p in test.get("properties", []) if p["name"] == "LABELS" for label in p["value"]]
            for test in json.loads(listing or "{}").get("tests", [])}


def missing(required, labels, ran):
    """A sentence for each required group that was not run whole."""
    for group in required:
        entries = [name for name, own in labels.items() if group in own]
        if not entries:
            yield f"group {group}: this build has no test of it"
        for name in entries:
            if name not in ran:
                yield f"group {group}: {name} ran no case"


def read(path):
    """The file's text without control characters, which XML forbids but test output may hold. "" if missing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "?", file.read())
    except FileNotFoundError:
        return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--require", action="append", default=[])
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()
    total, reasons, failed_names, labels, ran = [0, 0, 0], {}, [], {}, set()
    for folder in args.folders:
        text = read(os.path.join(folder, "test-results.xml"))
        if not text:
            failed_names.append(f"{folder}/test-results.xml was not written: ctest did not run")
            total[1] += 1
            continue
        *counts, names, new_reasons, new_ran = summarise(text)
        total = [a + b for a, b in zip(total, counts)]
        failed_names += names
        labels |= labels_of(read(os.path.join(folder, "test-list.json")))
        ran |= new_ran
        for reason, times in new_reasons.items():
            reasons[reason] = reasons.get(reason, 0) + times
    absent = list(missing(args.require, labels, ran))
    total[1] += len(absent)
    for reason, times in sorted(reasons.items()):
        print(f"skipped {times} x: {reason}")
    for name in failed_names + absent:
        print(f"failed: {name}")
    print("{} passed, {} failed, {} skipped".format(*total))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
