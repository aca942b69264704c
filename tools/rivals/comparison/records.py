"""Records on disk, and the regression check: a new record against the last one of the same device, as ratios."""

import json

from comparison import estimates, report, schema

THRESHOLD = 0.05  # a loss below it is not one, however narrow the intervals


def read(path):
    try:
        record = json.loads(path.read_text())
    except OSError as error:
        raise schema.Invalid(f"{path}: {error.strerror}.") from None
    except ValueError as error:
        raise schema.Invalid(f"{path} is not JSON: {error}.") from None
    schema.check(record, "record", path.name)
    return record


def new_path(folder, model, mode, profile):
    """Where a record of the file `model` goes. Never over another record: those are data."""
    path = folder / f"rivals.{model.rsplit('.', 1)[0]}.{mode}.{profile}.json"
    if path.exists():
        raise schema.Invalid(f"{path} exists; records are not overwritten. Give another folder.")
    return path


def save(record, folder):
    folder.mkdir(parents=True, exist_ok=True)
    path = new_path(folder, record["model"]["name"], record["mode"], record["profile"])
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path


def key(record):
    """The facts that must be equal for two records to be compared."""
    return (record["machine"]["device"], record["machine"]["cores"], record["model"]["sha256"], record["mode"],
            record["profile"], record["intent"])


def last_like(record, folder):
    """The newest record below the folder with the same key that is older than this one, or None."""
    found = []
    for path in sorted(folder.rglob("rivals.*.json")):
        other = read(path)
        if key(other) == key(record) and other["date"] < record["date"]:
            found.append(other)
    return max(found, key=lambda other: other["date"], default=None)


def changes(new, old, threshold=THRESHOLD):
    """A row a figure of both: ratio above 1 is better now. It is `worse` where it lost more than the threshold and more
    than both records' spreads together."""
    before = {(result["engine"], result["workload"]): result["figures"] for result in old["results"]}
    out = []
    for result in new["results"]:
        figures = before.get((result["engine"], result["workload"]), {})
        for name, figure in result["figures"].items():
            if name not in figures:
                continue
            ratio = report.advantage(name, figure["median"], figures[name]["median"])
            allowed = max(threshold, estimates.spread(figure) + estimates.spread(figures[name]))
            out.append({"engine": result["engine"], "workload": result["workload"], "figure": name, "ratio": ratio,
                        "allowed_loss": allowed, "worse": ratio < 1 - allowed})
    return out
