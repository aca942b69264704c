"""kill -9 at random moments of `doppler convert`: never a half model under the final name, and the same command then
goes on and makes the same bytes as an uninterrupted one. A model is made with `doppler synth`; a GGUF file and an RDRR
folder are killed in turn. Standard library only.
  kill_test.py --doppler PROGRAM [--kills 6] [--seed 1]"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time


def contents(path):
    """Every file's bytes: of a file, or of a folder by name."""
    if os.path.isdir(path):
        return {name: open(os.path.join(path, name), "rb").read() for name in sorted(os.listdir(path))}
    with open(path, "rb") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--doppler", required=True)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        subprocess.run([args.doppler, "synth", "llama-tiny:f16", "-o", "in.gguf"], check=True, capture_output=True)

        def command(out):
            more = ["--shard-size", "64K"] if not out.endswith(".gguf") else []
            return [args.doppler, "convert", "--json", "--quantize", "q4_k", "--threads", "1", *more, "in.gguf", out]

        wanted, seconds = {}, {}
        for out in ("whole.gguf", "whole"):
            start = time.monotonic()
            subprocess.run(command(out), check=True, capture_output=True)
            seconds[out[5:]] = time.monotonic() - start
            wanted[out[5:]] = contents(out)
        killed, resumed = 0, 0
        while killed < args.kills:
            ending = rng.choice(["", ".gguf"])
            out = "out" + ending
            process = subprocess.Popen(command(out), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                # 1.1: some kills come after the end of the work, when the names change.
                process.wait(timeout=rng.uniform(0, 1.1 * seconds[ending]))
            except subprocess.TimeoutExpired:
                process.kill()
                killed += 1
            text = process.communicate()[0]
            if process.returncode == 0:
                resumed += json.loads(text)["resumed_bytes"] > 0
            if os.path.exists(out):
                if contents(out) != wanted[ending]:
                    sys.exit(f"{out} has other bytes than an uninterrupted conversion (seed {args.seed}).")
                subprocess.run(["rm", "-r", out], check=True)
            elif process.returncode == 0:
                sys.exit(f"{out} is missing after success.")
        for ending in ("", ".gguf"):
            out = "out" + ending
            result = subprocess.run(command(out), capture_output=True, text=True)
            if result.returncode != 0:
                sys.exit(f"The last run failed: {result.stderr}")
            resumed += json.loads(result.stdout)["resumed_bytes"] > 0
            if contents(out) != wanted[ending]:
                sys.exit(f"{out} has other bytes than an uninterrupted conversion (seed {args.seed}).")
        left = [name for name in os.listdir(".") if ".part" in name]
        if left:
            sys.exit(f"Left behind: {left}.")
    print(f"{killed} kills, {resumed} finished runs had gone on from what was there")


if __name__ == "__main__":
    main()
