#!/usr/bin/env python3
"""Finds sentences of comments and pages that are hard to read: without a subject, inverted, or with stand-ins for plain
words.

  plain_words.py [PATH...]           counts by pattern, with advice (default: every path of plain_words_limits.txt)
  plain_words.py --list NAME [PATH...]   the places of one pattern ("all": of every pattern)
  plain_words.py --check             the lint test: exit status 1 if a path has more than plain_words_limits.txt allows

A hit is a place to read again, not a verdict. docs/design/style.md shows how such sentences are written better. A line
that ends with "plain: ok" is left out. Needs git and the standard library."""

import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize

LIMITS = pathlib.Path(__file__).with_name("plain_words_limits.txt")
LONGEST = 120

# Name: a regular expression on one sentence, and advice.
PATTERNS = {
    "opens-with-of": (r"^Of (?!course\b)\w+", "name the subject first: 'The third tensor of ...'"),
    "opens-with-question": (r"^(What|Which|How) (?!to\b|it works$)(?!.*\?$)",
                            "a label such as 'The row's position', or a whole sentence"),
    "behind-for-after": (r"\bbehind\b(?! (a|the|its|your) (\w+ )?(proxy|firewall|flag|load balancer))",
                         "'after' in time or order, 'at depth N' for contexts"),
    "alone-for-only": (r"(?<!stands )(?<!stand )(?<!left )(?<!leave )\balone\b(?! (is|are|was|can)\b)",
                       "'only', or 'on its own'"),
    "where-there-is": (r"\b[Ww]here (there (is|are|was|were)|it is|they are|that is|nothing|nobody|one is)\b",
                       "'if' or 'when'"),
    "as-it-was": (r"\bas (they were|they are|it was|it is)(?=[.,;:)]|$| (unless|if|where|when|and|or|by)\b)",
                  "say what it is"),
    "elided-opening": (r"^((There|Here) )?(Left|Lost|Near|Not there|Unmet|Asked|Tried|Next|Known)( (there|here))?[:.,]",
                       "a sentence: 'We have not ...'"),
    "fragment": (r"^(And|But|Or|So|Hence|Else|Beyond|Behind)\b"
                 r"(?!.*\b(is|are|was|were|has|have|had|do|does|did|can|may|must|will|need|\w+s|\w+ed)\b)[^?]{0,60}[.:]$", "a whole sentence"),
    "semicolon-chain": (r"^[^{}=]*?[\w)];[^;{}=]{3,};[^;{}=]{3,}(;|\.$)(?!.*\(\);)", "one fact a sentence"),
    "bracketed-figures": (r"\d[\d,.]*( [a-z/]+){0,2} \(\d[\d,.]*(, \d[\d,.]*)+\)",
                          "a table, or words that say what each figure is"),
    "negated-subject": (r"\b(nobody|nothing|none) (can|may|must|needs?|reads?|has|is)\b", "say who or what does"),
    "inverted-verb": (r"(?<!and )\b(so|then|thus|hence|neither|nor) (is|are|was|were|does|do|has|have|can|must) "
                      r"(the|a|an|it|they|this|that|its|their)\b", "subject before verb"),
    "that-chain": (r"\bthat\b[^.;:]*\bthat\b[^.;:]*\bthat\b", "split the sentence"),
    "of-them": (r"\bof (them|these|those)\b(?! \w)", "repeat the noun"),
    "asked-for": (r"\b(was|were|are) (asked for|wanted)\b", "name the target: 'The target is ...'"),
}
TABLE_CELLS = {"behind-for-after", "alone-for-only", "where-there-is", "as-it-was", "that-chain"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
GENERATED = re.compile(r"<!-- (tables|speeds|rivals)\b")


def tracked(paths):
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    out = subprocess.run([*command, "--", *paths], check=True, capture_output=True, text=True).stdout
    for name in sorted(set(filter(None, out.split("\0")))):
        path = pathlib.Path(name)
        kind = ".cmake" if path.name == "CMakeLists.txt" else path.suffix
        if kind in READERS and path.is_file() and not re.search(r"docs/results/2|third_party", name):
            yield path, kind


def prose_lines(text):
    """(number, text, cell) of a Markdown file's words: no code, no headings, no generated tables."""
    code = generated = False
    for number, raw in enumerate(text.splitlines(), 1):
        stripped = raw.strip()
        if stripped.startswith("```"):
            code = not code
        if GENERATED.match(stripped):
            generated = True
        if stripped.startswith("<!-- end of"):
            generated = False
        if code or generated or raw.startswith(("    ", "#", "<!--")) or stripped.startswith("```") or not stripped:
            yield number, "", False
        elif stripped.startswith("|"):
            for cell in stripped.strip("|").split("|"):
                yield number, cell.strip(), True
        else:
            item = re.match(r"\s*([-*]|\d+\.|>)\s+", raw)
            if item:
                yield number, "", False  # an item begins a sentence
            yield number, raw[item.end():] if item else stripped, False


def comment_lines(text):
    """(number, text, False) of the comments of C++, WGSL and JavaScript, without indented lines, which are usage or
    lists. A comment after code stands by itself."""
    for number, raw in enumerate(text.splitlines(), 1):
        found = re.search(r"(?:^|\s)//[/!]?<?\s?(.*)$", raw) or re.match(r"\s*/?\*+\s(.*?)(?:\*/)?$", raw)
        words = found[1] if found and not found[1].startswith("  ") else ""
        yield from alone_if(found and raw[:found.start()].strip(), number, words.strip())


def hash_lines(text):
    """The same of shell scripts and CMake."""
    for number, raw in enumerate(text.splitlines(), 1):
        found = re.match(r"\s*#(?!!)\s?(.*)$", raw)
        yield number, found[1].strip() if found and not found[1].startswith("  ") else "", False


def python_lines(text):
    """The same of Python: comments and docstrings."""
    words = {}  # line number: (text, after code)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            words[token.start[0]] = token.string.lstrip("# "), bool(token.line[:token.start[1]].strip())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node):
            quoted = node.body[0]
            for number in range(quoted.lineno, quoted.end_lineno + 1):
                raw = text.splitlines()[number - 1]
                if number == quoted.lineno or not raw[quoted.col_offset:].startswith(" "):
                    words[number] = raw.replace('"""', "").strip(), False
    for number in range(1, text.count("\n") + 2):
        found, after_code = words.get(number, ("", False))
        yield from alone_if(after_code, number, found)


def alone_if(apart, number, text):
    """One line, and if it stands apart from its neighbours, empty ones around it."""
    if apart:
        yield number, "", False
    yield number, text, False
    if apart:
        yield number, "", False


READERS = {".md": prose_lines, ".py": python_lines, ".sh": hash_lines, ".cmake": hash_lines,
           **dict.fromkeys((".cpp", ".h", ".wgsl", ".mjs", ".js", ".ts"), comment_lines)}


def without_names(text):
    """Code and quotations are not the author's words, and a link is its text."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\s*@\w+.*|\s*\*/.*", "", text)  # tags of JSDoc and the code after a comment
    return re.sub(r'`[^`]*`|"[^"]*"|\bplain: ok$', "x", text)


def sentences(lines):
    """(number, sentence, cell): lines that follow one another are joined, then cut after a full stop."""
    block = []  # (number, text)
    for number, text, cell in [*lines, (0, "", False)]:
        if cell or not text or re.fullmatch(r"[-=*/ ]+", text):
            yield from cut(block)
            block = []
            if cell:
                yield number, without_names(text), True
        elif not text.endswith("plain: ok"):
            block.append((number, text))
        if text.rstrip().endswith(":"):
            yield from cut(block)
            block = []


def cut(block):
    if not block:
        return
    joined, starts = "", []
    for number, text in block:
        starts.append((len(joined), number))
        joined += text + " "
    masked = re.sub(r'`[^`]*`|"[^"]*"|\[[^\]]*\]\([^)]*\)', lambda m: "x" * len(m.group()), joined)
    begin = 0
    for end in [m.end() for m in re.finditer(r"[.!?][)\"]? +(?=[A-Z`\"x(])", masked)] + [len(joined)]:
        sentence = joined[begin:end].strip()
        if sentence:
            yield max(n for offset, n in starts if offset <= begin), without_names(sentence), False
        begin = end


def hits_of(sentence, cell):
    """The patterns that a sentence, or the words of a table's cell, match."""
    return [name for name, (pattern, _) in PATTERNS.items()
            if (not cell or name in TABLE_CELLS) and re.search(pattern, sentence)]


def long_lines(text, worded):
    """(number, line) of the lines with words, numbered in `worded`, that are too long; an address cannot be wrapped."""
    for number, raw in enumerate(text.splitlines(), 1):
        if number in worded and len(raw) > LONGEST and "http" not in raw and not raw.endswith("plain: ok"):
            yield number, raw.strip()


def read(paths):
    """Hits as pattern to [(path, number, sentence)], the count of lines with words, and [(path, number, long line)]."""
    hits, total, long = {name: [] for name in PATTERNS}, 0, []
    for path, kind in tracked(paths):
        text = path.read_text(errors="replace")
        lines = list(READERS[kind](text))
        worded = {number for number, words, cell in lines if words and not cell}
        total += len(worded)
        for number, sentence, cell in sentences(lines):
            for name in hits_of(sentence, cell):
                hits[name].append((path, number, sentence))
        long += [(path, number, raw) for number, raw in long_lines(text, worded)]
    return hits, total, long


def limits():
    """[(path, most hits, their unit, most long lines)]; the unit is "in-1000" or "hits"."""
    rows = []
    for line in LIMITS.read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            rows.append((words[0], int(words[1]), words[2], int(words[3])))
    return rows


def check():
    faults = 0
    for path, most, unit, most_long in limits():
        hits, total, long = read([path])
        count = sum(map(len, hits.values()))
        if (1000 * count > most * total) if unit == "in-1000" else count > most:
            faults += 1
            print(f"{path}: {count} hard sentences in {total} lines of prose; at most {most} {unit.replace('-', ' ')} "
                  f"are allowed. To see them: tools/lint/plain_words.py --list all {path}")
        if len(long) > most_long:
            faults += 1
            print(f"{path}: {len(long)} lines are longer than {LONGEST} columns; {most_long} are allowed. "
                  f"To see them: tools/lint/plain_words.py --list long {path}")
    return 1 if faults else 0


def main(words):
    if words in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    if words == ["--check"]:
        return check()
    listed = words[1] if words[:1] == ["--list"] and len(words) > 1 else None
    if listed not in (None, "all", "long", *PATTERNS):
        print(f'No pattern is called "{listed}"; there are all, long, {", ".join(PATTERNS)}.')
        return 2
    hits, total, long = read((words[2:] if listed else words) or [row[0] for row in limits()])
    if listed:
        places = long if listed == "long" else [(*hit, name) for name in PATTERNS for hit in hits[name]
                                                if listed in ("all", name)]
        for path, number, text, *name in places:
            print(f"{path}:{number}: {''.join(f'[{n}] ' for n in name)}{text[:160]}")
        return 0
    for name, found in sorted(hits.items(), key=lambda item: -len(item[1])):
        print(f"{len(found):6} {name:20} {PATTERNS[name][1]}")
    count = sum(map(len, hits.values()))
    print(f"{count} hits in {total} lines of comments and prose ({1000 * count / max(1, total):.0f} in 1,000), "
          f"{len(long)} lines over {LONGEST} columns")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
