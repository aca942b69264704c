"""Measures the host memory of a large model: writes a synthetic file of a real shape, has it answer, and records the
process's peaks, by kind. Not part of the usual tests: a file of 40 GB takes minutes, and a GPU that holds it.
  python3 tests/large_model.py --doppler PROGRAM [--shape llama-3.1-70b:q4_k_m] [--folder DIR] [--most-gib 4] [--save
  FILE]
The file is deleted at the end. Passed: the answer came, and resident memory, pages of the mapped file among it, stayed
below the limit."""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "server"))
from figures import COMMIT, write_record  # noqa: E402

EVERY = 0.05  # seconds
KINDS = {"VmRSS": "resident", "RssAnon": "anonymous", "RssFile": "of_files", "RssShmem": "shared"}


def memory(pid):
    """Bytes by kind; empty where the process has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file)
        return {name: int(fields[key].split()[0]) * 1024 for key, name in KINDS.items()}
    except (OSError, KeyError):
        return {}


def run(command):
    """Its answer, seconds, and the peak of each kind of memory."""
    begun, peaks = time.time(), dict.fromkeys(KINDS.values(), 0)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            for name, size in memory(process.pid).items():
                peaks[name] = max(peaks[name], size)
            time.sleep(EVERY)
        text = process.stdout.read()
    return process.returncode, text, round(time.time() - begun, 1), peaks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--doppler", required=True, help="the program")
    parser.add_argument("--shape", default="llama-3.1-70b:q4_k_m")
    parser.add_argument("--folder", default=None, help="where the file goes (default: the system's for temporary files)")
    parser.add_argument("--most-gib", type=float, default=4)
    parser.add_argument("--label", default="", help="what the machine is")
    parser.add_argument("--save", metavar="FILE", help="the record as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = os.path.join(folder, "large.gguf")
        begun = time.time()
        subprocess.run([arguments.doppler, "synth", arguments.shape, "-o", path], check=True, stdout=sys.stderr)
        made = round(time.time() - begun, 1)
        size = os.path.getsize(path)
        code, text, seconds, peaks = run([arguments.doppler, "run", "-m", path, "-n", "32", "--temp", "0", "--ignore-eos",
                                          "--json", "The fox and the crow"])
    answer = json.loads(text) if code == 0 else {}
    passed = code == 0 and peaks["resident"] < arguments.most_gib * 2**30
    record = {"kind": "large_model", "passed": passed, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
              "commit": COMMIT, "machine": arguments.label or platform.machine(), "shape": arguments.shape, "file_bytes": size,
              "synth_seconds": made, "run_seconds": seconds, "most_bytes": int(arguments.most_gib * 2**30),
              "peak_bytes": peaks, "answer": {key: value for key, value in answer.items() if key not in ("text", "tokens")}}
    write_record(record, arguments.save)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
