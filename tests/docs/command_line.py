"""The tables of docs/reference/command-line.md are what `doppler --help` and `doppler VERB --help` say; --write renews
them.
  command_line.py --doppler PROGRAM [--write]   (in the repository's root; standard library only)"""

import re
import subprocess

import generated_page

# Commands that have a flag in the same words: it has its row in one table for all, unless two flags of its name would.
SEVERAL = 3
SHARED = "Flags of several commands"
LONGEST = 120  # columns of prose
# A flag's line in --help; its text stands on the next line where the left part is long.
FLAG = re.compile(r"  (?:-(?P<letter>.), |    )--(?P<name>\S+)(?: (?P<value>\S+(?: \S+)*))?(?:  +(?P<help>\S.*))?")


def flags_of(text):
    """(name, letter, value, help) of each flag that a verb's --help lists."""
    flags = []
    for line in text.splitlines():
        if found := FLAG.fullmatch(line):
            flags.append([found["name"], found["letter"] or "", found["value"] or "", found["help"] or ""])
        elif line.startswith("   ") and flags and not flags[-1][3]:
            flags[-1][3] = line.strip()
    return [tuple(flag) for flag in flags]


def cell(text):
    return text.replace("|", "\\|")


def row(flag):
    name, letter, value, text = flag
    shown = f"-{letter}, --{name}" if letter else f"--{name}"
    return f"| `{shown}{' ' + cell(value) if value else ''}` | {cell(text)} |"


def tables(verbs):
    """verbs: what verbs_of() gives."""
    users = {}
    for verb, (_, _, flags) in verbs.items():
        for flag in flags:
            users.setdefault(flag, []).append(verb)
    common = [flag for flag, who in users.items() if len(who) >= SEVERAL]
    shared = [flag for flag in common if [other[0] for other in common].count(flag[0]) == 1]
    link = f"[{SHARED.lower()}](#{SHARED.lower().replace(' ', '-')})"
    lines = []
    for verb, (summary, usage, flags) in verbs.items():
        own = [flag for flag in flags if flag not in shared]
        others = [f"`--{flag[0]}`" for flag in flags if flag in shared]
        told = f"`{usage}`: {summary}."
        lines += [f"## {verb}", told if len(told) <= LONGEST else f"`{usage}`:\n{summary}.", ""]
        if own:
            lines += ["| flag | what it does |", "|---|---|", *map(row, own), ""]
        if others:
            lines += [f"It {'also has' if own else 'has'} these {link}: {', '.join(others)}.", ""]
    lines += [f"## {SHARED}", "| flag | what it does |", "|---|---|", *map(row, shared)]
    return "\n".join(lines)


def verbs_of(program):
    """The program's verbs by name: (summary, usage, flags)."""

    def said(*words):
        return subprocess.run([program, *words, "--help"], check=True, capture_output=True, text=True).stdout

    verbs = {}
    for name, summary in re.findall(r"^  (\S+) +(.+)$", said(), re.MULTILINE):
        text = said(name)
        usage = re.search(r"^Usage: (.+)$", text, re.MULTILINE)[1]
        verbs[name] = (summary, usage, flags_of(text))
    return verbs


def make(program):
    return tables(verbs_of(program))


if __name__ == "__main__":
    generated_page.run("command_line.py", "docs/reference/command-line.md", __doc__, make)
