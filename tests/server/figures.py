"""Helpers of the long tests of the server: figures of the process, percentiles, the record that a run leaves. Standard
library only."""

import json
import os
import platform
import subprocess
import time

# At the beginning: the sources may change while a run takes its time. DOPPLER_COMMIT: on a machine without the history.
COMMIT = os.environ.get("DOPPLER_COMMIT") or subprocess.run(
    ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False).stdout.strip()


def process_figures(pid):
    """Memory in MiB, threads, and open files: connections, the driver's (devices and what it shares with them), and
    ours."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file)
    counts = {"files": 0, "sockets": 0, "driver_files": 0}
    for target, count in open_files(pid).items():
        is_driver = target.startswith(("/dev/nvidia", "/dev/dri", "/memfd:", "/dmabuf:"))
        counts["sockets" if target == "socket" else "driver_files" if is_driver else "files"] += count
    return {"rss_mib": round(int(fields["VmRSS"].split()[0]) / 1024, 1), "threads": int(fields["Threads"]), **counts}


def open_files(pid):
    """Open files by name, with their number. Sockets and pipes are one name each; a file has the last part of its
    path."""
    counts = {}
    for entry in os.scandir(f"/proc/{pid}/fd"):
        target = target_of(entry.path)
        if target.startswith(("socket:", "pipe:")):
            target = target.partition(":")[0]
        elif target.startswith("/") and not target.startswith(("/dev/", "/memfd:", "/dmabuf:")):
            target = "*/" + os.path.basename(target)
        counts[target] = counts.get(target, 0) + 1
    return dict(sorted(counts.items()))


def target_of(link):
    try:
        return os.readlink(link)
    except OSError:  # closed meanwhile
        return ""


def percentile(values, part):
    values = sorted(values)
    return round(values[min(len(values) - 1, int(part * len(values)))], 4) if values else None


def metric(page, name):
    """The sum of a metric's values over its labels."""
    lines = [line for line in page.splitlines() if line.startswith((name + " ", name + "{"))]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def wait_until_ready(served):
    served.timeout = 600  # without a GPU much waits for its turn
    while served.ask("GET", "/health")[0] != 200:
        assert served.process.poll() is None, "the server ended"
        time.sleep(0.1)


def add_arguments(parser):
    parser.add_argument("--doppler", required=True, help="the program")
    parser.add_argument("--label", default="", help="what the machine is")
    parser.add_argument("--save", metavar="FILE", help="the figures as JSON")


def finish(arguments, kind, served, passed, figures):
    """Prints the figures and saves them; the exit status."""
    device = served.ask("GET", "/props")[2]["models"][0].get("device")
    record = {"kind": kind, "passed": passed, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
              "commit": COMMIT, "machine": arguments.label or platform.machine(), "device": device,
              "settings": {key: value for key, value in vars(arguments).items()
                           if key not in ("doppler", "save", "label")}, **figures}
    served.end()
    write_record(record, arguments.save)
    return 0 if passed else 1


def write_record(record, path):
    """Prints a record as JSON, and saves it where a path is given."""
    text = json.dumps(record, indent=2)
    print(text)
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")
