"""What the long tests of the server share: figures of the process, percentiles, the record that a run leaves. Standard
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
    """Memory in MiB, threads, open files, and those of them that are sockets: what else grows is the driver's or ours."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file)
    files = [target_of(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
    return {"rss_mib": round(int(fields["VmRSS"].split()[0]) / 1024, 1), "threads": int(fields["Threads"]),
            "files": len(files), "sockets": sum(file.startswith("socket:") for file in files)}


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
    text = json.dumps(record, indent=2)
    print(text)
    if arguments.save:
        with open(arguments.save, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    return 0 if passed else 1
