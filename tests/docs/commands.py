"""Every command of doppler in the code of the Markdown files has a verb and flags that the program knows, and every
other flag there is one of a verb or of our own scripts.
  commands.py --doppler PROGRAM   (in the repository's root; standard library only)"""

import argparse
import re
import sys

import command_line
import links

OF_LAUNCHER = {"test"}  # ./doppler test
FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    (?! )(.*)$", re.MULTILINE)
SPAN = re.compile(r"`([^`]+)`")
COMMAND = re.compile(r"(?<![\w.\"-])(?<!-- )(?:\./|[\w./]+/)?doppler +(-?-?[a-z][\w-]*)([^|;&)]*)")
FLAG = re.compile(r"(?<!\S)-(?:-(?P<name>[a-z][a-z0-9-]*)|(?P<letter>[A-Za-z]+))(?![\w-])")


def code_of(text):
    """Lines of the page's blocks, without comments, and its spans."""
    blocks = FENCE.findall(text)
    rest = FENCE.sub("", text)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines() + INDENTED.findall(rest)
    yield from (re.sub(r"(^|\s)# .*", "", line) for line in lines)
    yield from (span.replace("\n", " ") for span in SPAN.findall(INDENTED.sub("", rest)))


class Flags:
    """The flags of the program's verbs, and those of our scripts."""

    def __init__(self, program):
        self.of_verb = {}
        for verb, (_, _, flags) in command_line.verbs_of(program).items():
            letters = {letter for _, letter, _, _ in flags}
            also = {word for *_, text in flags for word in re.findall(r"\(also -(\w+)\)", text)}
            self.of_verb[verb] = ({name for name, *_ in flags} | {"help"}, letters | also | {"h"})
        self.anywhere = {"version"}.union(*(names for names, _ in self.of_verb.values()))
        self.of_scripts = set()
        for path in links.tracked("tools", "tests", "examples", "web", "*CMakeLists.txt"):
            if path.suffix in ("", ".py", ".sh", ".mjs", ".txt"):
                self.of_scripts |= set(re.findall(r"--([a-z][a-z0-9-]+)", path.read_text(errors="ignore")))


def faults_of_command(flags, verb, words):
    if verb in ("--help", "--version") or verb in OF_LAUNCHER:
        return
    if verb not in flags.of_verb:
        yield f'"{verb}" is no verb'
        return
    names, letters = flags.of_verb[verb]
    for found in FLAG.finditer(words.split(" -- ")[0]):
        if found["name"] and found["name"] not in names:
            yield f"{verb} has no --{found['name']}"
        if found["letter"] and found["letter"] not in letters:
            yield f"{verb} has no -{found['letter']}"


def faults(flags, text):
    for code in code_of(text):
        for verb, words in COMMAND.findall(code):
            yield from (f"{fault}: {code.strip()}" for fault in faults_of_command(flags, verb, words))
        found = FLAG.match(code)
        if found and found["name"] and found["name"] not in flags.anywhere | flags.of_scripts:
            yield f"no verb and no script has --{found['name']}: {code}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--doppler", required=True)
    flags = Flags(parser.parse_args().doppler)
    pages = [page for page in links.tracked("*.md") if not str(page).startswith(links.PAST)]
    found = [f"{page}: {fault}" for page in pages for fault in faults(flags, page.read_text())]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
