"""README's tables of speeds and of rivals are each what one folder of docs/results holds; --write renews them. The folder stands
in README itself, in the line that opens the table: another folder there, and --write, is a newer table.
  speed_table.py [--write]   (in the repository's root; standard library only)"""

import argparse
import json
import pathlib
import re
import sys

PAGE = pathlib.Path("README.md")
# Rows of the table: shape, depth of the decode, whether its prefill stands beside it. Deep ones stand there if they were measured.
ROWS = [("llama-3.2-1b", 128, True), ("llama-3.2-3b", 128, True), ("llama-3.1-8b", 128, True), ("llama-3.1-8b", 8192, False),
        ("gemma-3-1b", 128, True)]
QUANTISATION, REPETITIONS = "q4_k_m", 5
# Of rivals, profile parity: the engine of the cells and those in brackets, and columns: title, workload, figure.
ENGINES = ("doppler-native", "llama.cpp-cuda", "llama.cpp-vulkan")
COLUMNS = [("decode, one stream", "512x128", "decode_tok_s"), ("prompt of 4,096", "4096x256", "prefill_tok_s"),
           ("decode, 32 streams", "512x128x32", "decode_tok_s")]


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


def rivals(folder):
    """(shape, engine, workload, figure) -> median, of the folder's calibrations in profile parity."""
    found, devices = {}, set()
    for path in sorted(folder.glob(f"rivals.*_{QUANTISATION}.compute.parity.json")):
        record = json.loads(path.read_text())
        if record["intent"] != "calibrate":
            raise Wrong(f"{path} is an investigation; the table holds calibrations.")
        devices.add(record["machine"]["device"])
        for result in record["results"]:
            for name, figure in result["figures"].items():
                if len(figure["samples"]) >= REPETITIONS:
                    shape = record["model"]["name"].removesuffix(f"_{QUANTISATION}.gguf")
                    found[shape, result["engine"], result["workload"], name] = figure["median"]
    if len(devices) != 1:
        raise Wrong(f"{folder} has records of {len(devices)} devices; a table is of one.")
    return found


def rivals_table(found):
    lines = [f"| tok/s | {' | '.join(title for title, _, _ in COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for shape in dict.fromkeys(row[0] for row in ROWS):
        cells = []
        for _, workload, name in COLUMNS:
            figures = [found.get((shape, engine, workload, name)) for engine in ENGINES]
            if None in figures:
                raise Wrong(f"{shape} lacks {name} of {workload} with {REPETITIONS} rounds of each engine.")
            cells.append(f"{figures[0]:,.0f} ({', '.join(f'{figure:,.0f}' for figure in figures[1:])})")
        lines.append(f"| {shape} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


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
    for name, make in (("speeds", lambda folder: table(rates(folder))), ("rivals", lambda folder: rivals_table(rivals(folder)))):
        hold(name, make, arguments.write)
    return 0


def hold(name, make, write):
    """One table of README: between the line that opens it and the one that ends it."""
    text = PAGE.read_text()
    opening = re.search(rf"<!-- {name} of (docs/results/\S+): tests/docs/speed_table.py --write -->\n", text)
    ending = f"<!-- end of {name} -->"
    if not opening or ending not in text[opening.end():]:
        sys.exit(f"speed_table: {PAGE} lacks the lines that open and end the table of {name}.")
    end = text.index(ending, opening.end())
    try:
        wanted = make(pathlib.Path(opening[1]))
    except Wrong as wrong:
        sys.exit(f"speed_table: {wrong}")
    if text[opening.end():end] == wanted:
        return
    if not write:
        sys.exit(f"speed_table: the table of {name} of {PAGE} is not that of {opening[1]}; --write renews it.")
    PAGE.write_text(text[:opening.end()] + wanted + text[end:])


if __name__ == "__main__":
    sys.exit(main())
