"""Facts of a record about the machine, the program's commit and the model: those that matter to speed, without names of
hosts or folders."""

import datetime
import hashlib
import json
import os
import pathlib
import platform
import re
import subprocess

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]


def output_of(*command):
    """Standard output, or "" where the program is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def first_match(pattern, path):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE)
    except OSError:
        return ""
    return found.group(1).strip() if found else ""


def nvidia():
    """(name, driver) of the first NVIDIA GPU, or None."""
    line = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").partition("\n")[0]
    name, comma, driver = line.partition(", ")
    return (name, f"NVIDIA {driver}") if comma else None


def adapter(program):
    """(name, driver) of the first usable adapter of `doppler devices`, or None. program: doppler, or None."""
    if not program:
        return None
    try:
        device = next(row for row in json.loads(output_of(str(program), "devices", "--json")) if row["usable"])
        return device["name"], device.get("driver", "")
    except (ValueError, KeyError, StopIteration):
        return None


def describe(description, program):
    device, driver = nvidia() or adapter(program) or ("processor", "")
    memory = first_match(r"^MemTotal:\s+(\d+) kB", "/proc/meminfo")
    return {
        "description": description,
        "system": first_match(r'^PRETTY_NAME="?([^"\n]*)', "/etc/os-release") or platform.system(),
        "kernel": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "processor": first_match(r"^model name\s*:\s*(.*)$", "/proc/cpuinfo") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory or 0) / 2**20),
        "device": device,
        "driver": driver,
    }


def commit(program_folder=None):
    """The commit of the installed program, which may travel without its checkout, or else of this checkout."""
    if program_folder and (program_folder / "commit").is_file():
        return (program_folder / "commit").read_text().strip()
    revision = output_of("git", "-C", str(REPOSITORY), "rev-parse", "--short=12", "HEAD")
    if not revision:
        return "unknown"
    changed = output_of("git", "-C", str(REPOSITORY), "status", "--porcelain", "--untracked-files=no")
    return revision + ("+changes" if changed else "")


def model_facts(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def forget_pages(path):
    """Takes the file out of the page cache, as far as the system lets a program."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
