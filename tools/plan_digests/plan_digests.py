#!/usr/bin/env python3
"""Says which plans differ from the committed digests (tests/plans/digests.txt), and how.

Without --against it says which models x lanes x fixtures x plans changed. With it, it also shows the commands that
changed, one representative of each kind of change: the program of another build (of the commit before, say) records the
same plans. --renew then accepts what the build makes. tests/plans/plan_digest_test.cpp makes the digests and needs no
GPU. Uses only the standard library.
"""
import argparse
import collections
import concurrent.futures
import difflib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "tests/plans/digests.txt"
PROGRAM = "tests/plans/plan_digest_test"

Cell = collections.namedtuple("Cell", "model lane fixture plan")


def run(build: pathlib.Path, *words: str) -> str:
    done = subprocess.run([build / PROGRAM, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{build / PROGRAM} {' '.join(words)} failed: {done.stderr.strip()}")
    return done.stdout


def parse(text: str) -> dict[Cell, str]:
    """The format of tests/plans/digest_file.h."""
    digests, model = {}, ""
    for line in text.splitlines():
        if line.startswith("# "):
            model = line[2:]
            continue
        words, digest = line.split(" = ", 1)
        plan, *cells = words.split(" ")
        for cell in cells:
            fixture, lanes = cell.split(":")
            for lane in lanes.split(","):
                digests[Cell(model, lane, fixture, plan)] = digest
    return digests


def shortened(names: list[str], total: int) -> str:
    return "all" if len(names) == total > 1 else ", ".join(names)


def print_changed(changed: list[Cell], every: list[Cell]) -> None:
    """A line a model and set of plans: what changed of it."""
    print(f"{len(changed)} of {len(every)} plans changed.")
    plans_of = collections.defaultdict(list)
    for cell in changed:
        plans_of[cell.model, cell.fixture, cell.lane].append(cell.plan)
    groups = collections.defaultdict(list)
    for (model, fixture, lane), plans in plans_of.items():
        groups[model, fixture, tuple(sorted(plans))].append(lane)
    lanes = len({cell.lane for cell in every})
    for (model, fixture, plans), names in sorted(groups.items()):
        made = {cell.plan for cell in every if (cell.model, cell.fixture) == (model, fixture)}
        print(f"  {model}, fixture {fixture}, lanes {shortened(sorted(names), lanes)}: "
              f"{shortened(list(plans), len(made))}")


def plans_of(dump: str) -> dict[str, list[tuple[str, ...]]]:
    """The commands of each plan, a tuple of lines each: label and role, then the digested lines."""
    plans: dict[str, list[tuple[str, ...]]] = {}
    for block in re.split(r"\n(?! )", dump.strip()):
        heading = re.match(r"plan (\S+?),? (is refused|up to)", block)
        if heading:
            commands = plans.setdefault(heading[1], [])
            first = block.splitlines()[0]
            commands.append((first,) if heading[2] == "is refused" else ("plan", first.split(", ")[1]))
        else:
            commands.append(tuple(line.strip() for line in block.splitlines()))
    return plans


def contents(command: tuple[str, ...]) -> tuple[str, ...]:
    return command[1:] or command  # without label and role, which are not digested


def without_scratch(command: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(re.sub(r"scratch\d+", "scratch", line) for line in contents(command))


def describe_pair(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    lines = [old[0] if old[0] == new[0] else f"{old[0]}  ->  {new[0]}"]
    if without_scratch(old) == without_scratch(new):
        lines.append("  (only which scratch tensors are one and the same)")
    lines += [f"  {line}" for line in difflib.ndiff(contents(old), contents(new)) if line[0] in "-+"]
    return "\n".join(lines)


def describe_one(command: tuple[str, ...], sign: str) -> str:
    lines = [line for line in command[1:] if not line.startswith("const ")]
    return "\n".join([f"{sign} {command[0]}"] + [f"  {sign} {line}" for line in lines])


def compare_plans(old: list[tuple[str, ...]], new: list[tuple[str, ...]]) -> list[str]:
    """One text a command that changed."""
    out = []
    matcher = difflib.SequenceMatcher(None, [contents(c) for c in old], [contents(c) for c in new], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        pairs = min(b - a, d - c)
        out += [describe_pair(old[a + i], new[c + i]) for i in range(pairs)]
        out += [describe_one(command, "-") for command in old[a + pairs:b]]
        out += [describe_one(command, "+") for command in new[c + pairs:d]]
    return out


def kind_of(change: str) -> str:
    """Changes that differ only in roles, numbers and digests are of one kind."""
    heading, _, rest = change.partition("\n")
    labels = re.sub(r"^([-+] )?(\S+) \S*", r"\1\2", heading)
    return re.sub(r"\b[0-9a-f]{12}\b|\b[0-9a-f]{8}\b|\d+", "#", f"{labels}\n{rest}")


def print_commands(changed: list[Cell], builds: tuple[pathlib.Path, pathlib.Path]) -> None:
    """One representative of each kind of change of a command, and how many there are of it."""
    loads = collections.defaultdict(list)
    for cell in changed:
        loads[cell.model, cell.lane, cell.fixture].append(cell)

    def dumps(load: tuple[str, str, str]) -> list[dict[str, list[tuple[str, ...]]]]:
        return [plans_of(run(build, "dump", *load)) for build in builds]

    counts: collections.Counter[str] = collections.Counter()
    plans: collections.Counter[str] = collections.Counter()
    shown: dict[str, tuple[Cell, str]] = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for load, (old, new) in zip(loads, pool.map(dumps, loads)):
            for cell in loads[load]:
                kinds = set()
                for change in compare_plans(old.get(cell.plan, []), new.get(cell.plan, [])):
                    kind = kind_of(change)
                    counts[kind] += 1
                    kinds.add(kind)
                    shown.setdefault(kind, (cell, change))
                plans.update(kinds)
    print(f"\n{len(counts)} kinds of change of a command in {len(changed)} plans that differ from one another:")
    for kind, count in counts.most_common():
        cell, change = shown[kind]
        print(f"\n{count} commands in {plans[kind]} plans, as in plan {cell.plan} of {cell.model}, lane {cell.lane}, "
              f"fixture {cell.fixture}:\n{change}")


def representatives(changed: list[Cell], old: dict[Cell, str], new: dict[Cell, str]) -> list[Cell]:
    """One plan for all plans of a model that changed in the same way."""
    first = {}
    for cell in changed:
        first.setdefault((cell.model, old.get(cell), new.get(cell)), cell)
    return list(first.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="the build to ask (default: %(default)s)")
    parser.add_argument("--against", help="another build: shows how commands differ from that build's")
    parser.add_argument("--model", help="only models whose name contains this")
    parser.add_argument("--renew", action="store_true", help="writes tests/plans/digests.txt")
    args = parser.parse_args()
    build = pathlib.Path(args.build).resolve()

    text = run(build, "list")
    new = parse(text)
    old = parse(COMMITTED.read_text()) if COMMITTED.exists() else {}
    every = sorted(old.keys() | new.keys())
    changed = [cell for cell in every if old.get(cell) != new.get(cell) and (args.model or "") in cell.model]
    print_changed(changed, every)
    if args.against and changed:
        print_commands(representatives(changed, old, new), (pathlib.Path(args.against).resolve(), build))
    if args.renew:
        COMMITTED.write_text(text)
        print(f"{COMMITTED.relative_to(ROOT)} is written.")
        return 0
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
