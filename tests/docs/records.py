"""Holds what the repository keeps as data to its lists: folders of docs/results and files of tests/data stand in the
README beside them, and docs/results stays small. Run in the repository's root; standard library only."""

import pathlib
import subprocess
import sys

MOST_RESULTS = 60  # files; the history keeps older records


def tracked(folder):
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--", folder]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [pathlib.Path(name).relative_to(folder) for name in out.split("\0") if name and pathlib.Path(name).exists()]


def unlisted(folder):
    """Names right below `folder` that its README does not mention in backquotes."""
    text = pathlib.Path(folder, "README.md").read_text()
    names = sorted({path.parts[0] for path in tracked(folder)} - {"README.md"})
    return [name for name in names if f"`{name}" not in text]


def main():
    faults = [f'{folder}/README.md has no line for "{name}".'
              for folder in ("docs/results", "tests/data") for name in unlisted(folder)]
    count = len(tracked("docs/results"))
    if count >= MOST_RESULTS:
        faults.append(f"docs/results has {count} files; fewer than {MOST_RESULTS} are allowed. "
                      "Delete the records that newer ones replace (docs/results/README.md).")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
