#!/usr/bin/env python3
"""Error of each lane: relative L2 of its logits against the exact lane's, and how often both prefer the same token.

Every position of a text of ordinary English, the shipped model (or --model), one process a lane. `step` rows evaluate
one token at a time, as decoding does; the others the whole text as one prefill chunk. A lane that the device refuses is
listed with the reason. Uses only the standard library.
"""
import argparse
import array
import json
import math
import pathlib
import struct
import subprocess
import tempfile

TEXT = (
    "Once upon a time there was a little girl who lived in a village near the forest. Whenever she went out, she wore "
    "a red riding cloak, so everyone in the village called her Little Red Riding Hood. One morning she asked her "
    "mother if she could go to visit her grandmother, as it had been a while since they had seen each other."
)
STEP = ["--chunk", "1"]
FORMATS = ["q4", "q5", "q6", "q8"]


def force(operation: str, suffix: str) -> list[str]:
    """--kernel flags for the tile formats; those that the model does not have change nothing."""
    flags = []
    for name in FORMATS:
        flags += ["--kernel", f"{operation}.tile_{name}={operation}.tile_{name}.{suffix}"]
    return flags


LANES = [
    ("exact, step", ["--lane", "exact", *STEP]),
    ("portable", ["--lane", "portable"]),
    ("subgroups", ["--lane", "subgroups"]),
    ("dp4a", ["--lane", "dp4a"]),
    ("dp4a tiles of products", ["--lane", "dp4a", *force("matmul", "dp4a")]),
    ("matrix", ["--lane", "matrix"]),
    ("fast", []),
    ("fast, step", STEP),
    ("f32 over tiles, step", [*force("matvec", "tile"), *STEP]),
    ("dp4a over tiles, step", [*force("matvec", "dp4a.tile"), *STEP]),
]


def read_logits(path: pathlib.Path) -> tuple[array.array, int]:
    """The tensor `logits` of a safetensors file, and the vocabulary's size."""
    data = path.read_bytes()
    (header_bytes,) = struct.unpack("<Q", data[:8])
    entry = json.loads(data[8 : 8 + header_bytes])["logits"]
    begin, end = entry["data_offsets"]
    values = array.array("f")
    values.frombytes(data[8 + header_bytes + begin : 8 + header_bytes + end])
    return values, entry["shape"][1]


def best_tokens(logits: array.array, vocab: int) -> list[int]:
    rows = (logits[at : at + vocab] for at in range(0, len(logits), vocab))
    return [max(range(vocab), key=row.__getitem__) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--doppler", required=True, help="the program")
    parser.add_argument("--model", help="default: the shipped model")
    args = parser.parse_args()
    model = ["--model", args.model] if args.model else []

    said = subprocess.run([args.doppler, "tokenize", *model, TEXT], check=True, capture_output=True, text=True).stdout
    tokens = ",".join(said.split())
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "logits.safetensors"

        def run(flags: list[str]) -> str:
            command = [args.doppler, "logits", *model, "--tokens", tokens, "--out", str(out), "-c", "128", *flags]
            done = subprocess.run(command, capture_output=True, text=True)
            return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]

        refused = run(["--lane", "exact"])
        if refused:
            raise SystemExit(refused)
        want, vocab = read_logits(out)
        want_best = best_tokens(want, vocab)
        norm = math.fsum(v * v for v in want)
        print(f"{len(want_best)} positions, {vocab} logits each\n")
        print("| lane | relative L2 of the logits | same best token |\n|---|---|---|")
        for name, flags in LANES:
            refused = run(flags)
            if refused:
                print(f"| {name} | {refused} | |")
                continue
            got, _ = read_logits(out)
            error = math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(got, want)) / norm)
            same = sum(a == b for a, b in zip(best_tokens(got, vocab), want_best))
            print(f"| {name} | {error:.1e} | {same} of {len(want_best)} |", flush=True)


if __name__ == "__main__":
    main()
