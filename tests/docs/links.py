"""Every relative link of the Markdown files leads to a file of the repository, and its anchor to a heading there. Paths
in backquotes that begin with a folder of the repository are there too. Run in the repository's root; standard library
only."""

import pathlib
import re
import subprocess
import sys

PACKAGE = pathlib.Path("tools/package")
ELSEWHERE = {PACKAGE / "THIRD-PARTY.md", PACKAGE / "THIRD-PARTY-windows.md"}  # a package has it in another folder
PAST = ("docs/results/", "docs/diary/", "CHANGELOG.md")  # they tell of earlier versions
PLANNED = {"docs/reference/features.md", "src/kernels/twist"}  # pages name these as files that one would write
PATH = re.compile(r"`(?:\./)?([a-z][\w-]*(?:/[\w.*+-]+)+)/?[`\s]")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def without_code(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "x", text)


def anchors(path):
    """The anchors that a page's headings get: lower case, no punctuation, blanks as hyphens."""
    made, count = set(), {}
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = count.get(anchor, 0)
        count[anchor] = number + 1
        made.add(f"{anchor}-{number}" if number else anchor)
    return made


def faults(page):
    for target in LINK.findall(without_code(page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue  # an address
        name, _, anchor = target.partition("#")
        to = page if not name else pathlib.Path("." + name) if name.startswith("/") else page.parent / name
        if not to.exists():
            yield f'{page}: the link "{target}" leads to no file.'
        elif anchor and to.suffix == ".md" and anchor not in anchors(to):
            yield f'{page}: the link "{target}" leads to no heading of {to}.'


def faults_of_paths(page, folders):
    """`folders`: those at the repository's root."""
    for path in PATH.findall(re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)):
        is_placeholder = path in PLANNED or re.search(r"[/_](?!README)[A-Z]+\b", path)
        if path.split("/")[0] not in folders or is_placeholder:
            continue
        if not any(pathlib.Path().glob(path)) and not any(page.parent.glob(path)):
            yield f'{page}: there is no "{path}".'


def tracked(*patterns):
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    out = subprocess.run([*command, "--", *patterns], check=True, capture_output=True, text=True).stdout
    return [pathlib.Path(name) for name in sorted(set(filter(None, out.split("\0")))) if pathlib.Path(name).is_file()]


def main():
    pages = [page for page in tracked("*.md") if page not in ELSEWHERE]
    folders = {path.parts[0] for path in tracked() if len(path.parts) > 1}
    found = [fault for page in pages for fault in faults(page)]
    found += [fault for page in pages if not str(page).startswith(PAST) for fault in faults_of_paths(page, folders)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
