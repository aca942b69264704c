"""Writes the results of tests for each family as the data of `doppler models` (src/cli/verified_models.json).
  models_matrix.py RECORD.json...   (in the repository's root; records: golden tests and openai_test with
  --gtest_output=json:RECORD.json)
Rows of devices that the records do not name stay. A test that failed or was skipped shows nothing."""

import json
import sys

DATA = "src/cli/verified_models.json"
PREFIX = "shown-"
KEY = ("family", "format", "lane", "feature", "device")


def rows_of(record):
    rows = {}
    for suite in record["testsuites"]:
        for test in suite["testsuite"]:
            if test.get("result") != "COMPLETED" or "failures" in test:
                continue
            for name, value in test.items():
                if not name.startswith(PREFIX):
                    continue
                file_format, lane, feature = name[len(PREFIX):].split("-", 2)
                family, worst, device = value.split("|")
                cases, before = rows.get((family, file_format, lane, feature, device), (0, 0.0))
                rows[(family, file_format, lane, feature, device)] = (cases + 1, max(before, float(worst)))
    return rows


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    shown = {}
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            for key, (cases, worst) in rows_of(json.load(file)).items():
                have = shown.get(key, (0, 0.0))
                shown[key] = (have[0] + cases, max(have[1], worst))
    with open(DATA, encoding="utf-8") as file:
        kept = json.load(file)["shown"]
    devices = {key[4] for key in shown}
    rows = [row for row in kept if row["device"] not in devices]
    rows += [dict(zip(KEY, key)) | {"cases": cases, "worst": worst} for key, (cases, worst) in shown.items()]
    rows.sort(key=lambda row: [row[name] for name in KEY])
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    with open(DATA, "w", encoding="utf-8") as file:
        file.write('{"shown": [\n' + lines + "\n]}\n")
    print(f"{DATA}: {len(rows)} rows, {len(shown)} of these records")


if __name__ == "__main__":
    main()
