"""Holds the tables of speed in README.md and docs/reference/speed.md to the folders of docs/results that they name;
--write renews them.
  speed_table.py [--write]   (in the repository's root; standard library only)
A table stands between `<!-- NAME of docs/results/FOLDER: tests/docs/speed_table.py --write -->` and `<!-- end of NAME
-->`. Another folder in that line, and --write, makes a newer table."""

import argparse
import json
import pathlib
import re
import sys

QUANTISATION, REPETITIONS = "q4_k_m", 5  # fewer repetitions may not be quoted
SHAPES = ("llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b", "gemma-3-1b")
ENGINES = ("doppler-native", "llama.cpp-cuda", "llama.cpp-vulkan")
HEAD = "Doppler | llama.cpp, CUDA | llama.cpp, Vulkan"
# Title, workload and figure of the short table of rivals.
SHORT = [("decode, one stream", "512x128", "decode_tok_s"), ("prompt of 4,096", "4096x256", "prefill_tok_s"),
         ("decode, 32 streams", "512x128x32", "decode_tok_s")]
WORKLOADS = ("64x64", "256x128", "512x128", "4096x256", "32768x128", "512x128x8", "512x128x32")


class Wrong(Exception):
    pass


def calibrations(folder, pattern, machine):
    """(name of the shape, record) of the folder's files; all must be calibrations of one device."""
    found, devices = [], set()
    for path in sorted(folder.glob(pattern)):
        record = json.loads(path.read_text())
        shape = path.name.split(".", 1)[1].split(f"_{QUANTISATION}")[0]
        if shape not in SHAPES:
            continue
        if record["intent"] != "calibrate":
            raise Wrong(f"{path} is an investigation; the table holds calibrations.")
        devices.add(machine(record))
        found.append((shape, record))
    if len(devices) != 1:
        raise Wrong(f"{folder} has measurements of {len(devices)} devices; a table is of one.")
    return found


def speeds(folder):
    """One stream: decode in the lanes fast and persistent, and a prompt of 512."""
    found = {}
    for shape, report in calibrations(folder, f"bench.*_{QUANTISATION}.*.json", lambda r: r["device"]["adapter"]):
        for test in report["tests"]:
            if len(test["tokens_per_second"]["samples"]) >= REPETITIONS:
                found[shape, report["settings"]["lane"], test["test"]] = test["tokens_per_second"]["median"]
    lines = ["| shape | decode, lane fast | decode, lane persistent | prompt of 512 |", "|---" * 4 + "|"]
    for shape in SHAPES:
        decode, prefill = (found.get((shape, "fast", f"{test} @ d128")) for test in ("tg128", "pp512"))
        if decode is None or prefill is None:
            raise Wrong(f"{shape} lacks a decode or prefill in the lane fast with {REPETITIONS} repetitions.")
        persistent = found.get((shape, "persistent", "tg128 @ d128"))
        lines.append(f"| {shape} | {decode:,.0f} | {f'{persistent:,.0f}' if persistent else '-'} | {prefill:,.0f} |")
    return "\n".join(lines) + "\n"


def figures_of_rivals(folder):
    """(shape, engine, workload, figure) -> median, in profile parity."""
    found = {}
    pattern = f"rivals.*_{QUANTISATION}.compute.parity.json"
    for shape, record in calibrations(folder, pattern, lambda r: r["machine"]["device"]):
        for result in record["results"]:
            for name, figure in result["figures"].items():
                if len(figure["samples"]) >= REPETITIONS:
                    found[shape, result["engine"], result["workload"], name] = figure["median"]
    return found


def rivals(folder):
    found = figures_of_rivals(folder)
    lines = [f"| tokens a second | | {HEAD} |", "|---" * 5 + "|"]
    for shape in SHAPES:
        for title, workload, name in SHORT:
            figures = [found.get((shape, engine, workload, name)) for engine in ENGINES]
            if None in figures:
                raise Wrong(f"{shape} lacks {name} of {workload} with {REPETITIONS} rounds of each engine.")
            lines.append(f"| {shape} | {title} | {' | '.join(f'{figure:,.0f}' for figure in figures)} |")
    return "\n".join(lines) + "\n"


def every_rival(folder):
    found = figures_of_rivals(folder)
    lines = [f"| shape | workload | prompt: {HEAD} | decode: {HEAD} |", "|---" * 8 + "|"]
    for shape in SHAPES:
        for workload in WORKLOADS:
            figures = [found.get((shape, engine, workload, name))
                       for name in ("prefill_tok_s", "decode_tok_s") for engine in ENGINES]
            if any(figures):
                cells = " | ".join(f"{figure:,.0f}" if figure else "-" for figure in figures)
                lines.append(f"| {shape} | {workload} | {cells} |")
    return "\n".join(lines) + "\n"


TABLES = [(pathlib.Path("README.md"), "rivals", rivals), (pathlib.Path("docs/reference/speed.md"), "speeds", speeds),
          (pathlib.Path("docs/reference/speed.md"), "every rival", every_rival)]


def hold(page, name, make, write):
    """One table of `page`: between the line that opens it and the one that ends it."""
    text = page.read_text()
    opening = re.search(rf"<!-- {name} of (docs/results/\S+): tests/docs/speed_table.py --write -->\n", text)
    ending = f"<!-- end of {name} -->"
    if not opening or ending not in text[opening.end():]:
        sys.exit(f"speed_table: {page} lacks the lines that open and end the table of {name}.")
    end = text.index(ending, opening.end())
    try:
        wanted = make(pathlib.Path(opening[1]))
    except Wrong as wrong:
        sys.exit(f"speed_table: {wrong}")
    if text[opening.end():end] == wanted:
        return
    if not write:
        sys.exit(f"speed_table: the table of {name} in {page} is not that of {opening[1]}; --write renews it.")
    page.write_text(text[:opening.end()] + wanted + text[end:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    for page, name, make in TABLES:
        hold(page, name, make, arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
