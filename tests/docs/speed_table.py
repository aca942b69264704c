"""README's table of speeds is what one folder of docs/results holds; --write renews it. The folder stands in README itself, in
the line that opens the table: another folder there, and --write, is a newer table.
  speed_table.py [--write]   (in the repository's root; standard library only)"""

import argparse
import json
import pathlib
import re
import sys

PAGE = pathlib.Path("README.md")
OPENING = re.compile(r"<!-- speeds of (docs/results/\S+): tests/docs/speed_table.py --write -->\n")
END = "<!-- end of speeds -->"
# Rows of the table: shape, depth of the decode, whether its prefill stands beside it. Deep ones stand there if they were measured.
ROWS = [("llama-3.2-1b", 128, True), ("llama-3.2-3b", 128, True), ("llama-3.1-8b", 128, True), ("llama-3.1-8b", 8192, False),
        ("gemma-3-1b", 128, True)]
QUANTISATION, REPETITIONS = "q4_k_m", 5


class Wrong(Exception):
    pass


def rates(folder):
    """(shape, lane, test) -> median tokens a second, of the folder's calibrations with the table's quantisation."""
    found, devices = {}, set()
    for path in sorted(folder.glob(f"bench.*_{QUANTISATION}.*.json")):
        shape = path.name.removeprefix("bench.").split(f"_{QUANTISATION}")[0]
        if shape not in [row[0] for row in ROWS]:
            continue
        report = json.loads(path.read_text())
        if report["intent"] != "calibrate":
            raise Wrong(f"{path} is an investigation; the table holds calibrations.")
        devices.add(report["device"]["adapter"])
        for test in report["tests"]:
            if len(test["tokens_per_second"]["samples"]) < REPETITIONS:
                continue  # not to be quoted
            found[shape, report["settings"]["lane"], test["test"]] = test["tokens_per_second"]["median"]
    if len(devices) != 1:
        raise Wrong(f"{folder} has measurements of {len(devices)} devices; a table is of one.")
    return found


def table(found):
    lines = ["| shape | decode tg128 @ d128 | prefill pp512 @ d128 |", "|---|---|---|"]
    for shape, depth, with_prefill in ROWS:
        decode = found.get((shape, "fast", f"tg128 @ d{depth}"))
        prefill = found.get((shape, "fast", "pp512 @ d128")) if with_prefill else None
        if decode is None and depth != 128:
            continue
        if decode is None or with_prefill and prefill is None:
            raise Wrong(f"{shape} lacks a decode or prefill in the lane fast with {REPETITIONS} repetitions.")
        persistent = found.get((shape, "persistent", f"tg128 @ d{depth}"))
        name = shape if depth == 128 else f"{shape}, behind {depth:,} tokens"
        lines.append(f"| {name} | {decode:,.0f} tok/s{f' ({persistent:,.0f})' if persistent else ''} |"
                     f" {f'{prefill:,.0f} tok/s ' if prefill else ''}|")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    text = PAGE.read_text()
    opening = OPENING.search(text)
    if not opening or END not in text[opening.end():]:
        sys.exit(f"speed_table: {PAGE} lacks the lines that open and end the table.")
    end = text.index(END, opening.end())
    try:
        wanted = table(rates(pathlib.Path(opening[1])))
    except Wrong as wrong:
        sys.exit(f"speed_table: {wrong}")
    if text[opening.end():end] == wanted:
        return 0
    if not arguments.write:
        sys.exit(f"speed_table: the table of {PAGE} is not that of {opening[1]}; --write renews it.")
    PAGE.write_text(text[:opening.end()] + wanted + text[end:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
