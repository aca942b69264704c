"""The page docs/reference/features.md is made of tests/docs/features.json, which says of each pair of features that it
works and which tests show that, or with which sentence it is refused or left out, and why; --write renews the page.
  features.py [--write]   (in the repository's root; standard library only)
Every pair must be there. Every test must be in a file that is built or run, and every sentence in the source.

A pair that works has `works`, a list of tests, and perhaps `but`, a list of cases that are refused or left out. Another
pair has a `kind`. The kinds `refused` and `left_out` have a `reason` and a `sentence`: the format of a message, and the
texts that stand in for its last %s. Only what is left out may lack the sentence. The kind `apart` has a `reason` why no
model or request has both. The kind `untested` has `needs`, the test that is missing. A test is SUITE.NAME or
SUITE.NAME/CASE of googletest, or FILE: TITLE of a story, a test in JavaScript or a function in Python."""

import argparse
import itertools
import json
import pathlib
import re
import sys

import generated_page

DATA, PAGE = "tests/docs/features.json", "docs/reference/features.md"
MARKS = {"works": "+", "but": "±", "left_out": "o", "refused": "x", "apart": ".", "untested": "?"}
WORDS = {"left_out": "left out", "refused": "refused", "apart": "apart"}
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')


class Wrong(Exception):
    pass


def read(path):
    return path.read_text(encoding="utf-8")


def texts(source):
    """The texts of string literals, joined where literals follow each other."""
    for match in LITERALS.finditer(source):
        yield "".join(part.replace('\\"', '"') for part in re.findall(r'"((?:[^"\\\n]|\\.)*)"', match[0]))


class Repository:
    """The texts of the source, and the tests that there are."""

    def __init__(self):
        sources = [path for path in pathlib.Path("src").rglob("*.cpp") if not path.stem.endswith("_test")]
        self.said = {text for path in sources + list(pathlib.Path("src").rglob("*.h")) for text in texts(read(path))}
        self.javascript = "".join(read(path) for path in pathlib.Path("web").glob("*.mjs"))
        self.tests = {}  # SUITE.NAME: the texts of its file
        built = {}
        for path in list(pathlib.Path("src").rglob("*_test.cpp")) + list(pathlib.Path("tests").rglob("*_test.cpp")):
            folder = path.parent
            while not (folder / "CMakeLists.txt").exists():
                folder = folder.parent
            rules = built.setdefault(folder, read(folder / "CMakeLists.txt"))
            # Lists name sources with an ending or without.
            if not re.search(rf"\b{path.stem}\b|\b{path.stem.removesuffix('_test')}\b|GLOB", rules):
                continue
            source = read(path)
            for suite, name in re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", source, re.MULTILINE):
                self.tests[f"{suite}.{name}"] = set(texts(source))

    def hold_sentence(self, pair, sentence):
        first, *rest = sentence
        # A template of JavaScript has names where the data has %s.
        parts = first.split("%s")
        in_javascript = re.search(r"\$\{[^`]*?\}".join(re.escape(part) for part in parts), self.javascript)
        if first not in self.said and not in_javascript:
            raise Wrong(f"no source says \"{first}\" ({pair})")
        for part in rest:
            if part not in self.said:
                raise Wrong(f"no source says \"{part}\" ({pair})")

    def hold_test(self, pair, test):
        if ": " in test:
            self.hold_title(pair, *test.split(": ", 1))
            return
        name, _, case = test.partition("/")
        if name not in self.tests:
            raise Wrong(f"no test is named {name} ({pair})")
        if case and case not in self.tests[name]:
            raise Wrong(f"the file of {name} does not name the case {case} ({pair})")

    @staticmethod
    def hold_title(pair, file, title):
        path = pathlib.Path("tests") / file
        if not path.exists():
            raise Wrong(f"{path} is not there ({pair})")
        beginnings = {".story": "== ", ".mjs": r"\s*(?:test|check)\(", ".py": r"\s*def "}
        found = rf"^{beginnings[path.suffix]}.*{re.escape(title)}"
        if not re.search(found, read(path).replace("\\'", "'"), re.MULTILINE):
            raise Wrong(f"{path} has no test \"{title}\" ({pair})")


def hold(data, repository):
    features = data["features"]
    wanted = [f"{a}, {b}" for a, b in itertools.combinations(features, 2)]
    if list(data["pairs"]) != wanted:
        odd = set(wanted) ^ set(data["pairs"])
        raise Wrong(f"the pairs are not all pairs of features in their order: {', '.join(sorted(odd))}")
    for pair, row in data["pairs"].items():
        for each in [row, *row.get("but", [])]:
            hold_row(pair, each, repository)


def hold_row(pair, row, repository):
    kind = "works" if "works" in row else row["kind"]
    needed = {"works": "works", "untested": "needs"}.get(kind, "reason")
    if not row.get(needed):
        raise Wrong(f"{pair} lacks {needed}")
    if kind == "refused" and "sentence" not in row:
        raise Wrong(f"{pair} is refused without a sentence")
    if "sentence" in row:
        repository.hold_sentence(pair, row["sentence"])
    for test in row.get("works", []) + row.get("tests", []):
        repository.hold_test(pair, test)


def sentence_of(row):
    """As a user reads it, with ... for what a message names."""
    if "sentence" not in row:
        return "-"
    first, *rest = row["sentence"]
    for part in reversed(rest):
        before, _, after = first.rpartition("%s")
        first = before + part + after
    return re.sub(r"%(s|zu|u|d)", "...", first).replace("|", "\\|")


def title_of(data, pair, row):
    both = ", ".join(data["features"][key] for key in pair.split(", "))
    return both + (f" ({row['case']})" if "case" in row else "")


def rows_of(data, *kinds):
    """(pair, row) of pairs and of their cases that have one of these kinds."""
    for pair, row in data["pairs"].items():
        for each in [row, *row.get("but", [])]:
            if each.get("kind") in kinds:
                yield pair, each


def matrix(data):
    features = list(data["features"])
    lines = ["| | |" + "".join(f" {i} |" for i in range(1, len(features))), "|---|---|" + "---|" * (len(features) - 1)]
    for i, key in enumerate(features):
        cells = []
        for j in range(len(features) - 1):
            row = data["pairs"].get(f"{features[j]}, {key}") if j < i else None
            kind = "" if row is None else "but" if "but" in row else "works" if "works" in row else row["kind"]
            cells.append(MARKS.get(kind, ""))
        lines.append(f"| {i + 1} | {data['features'][key]} | " + " | ".join(cells) + " |")
    return lines


def make(data):
    count = {kind: sum(row.get("kind") == kind for row in data["pairs"].values()) for kind in MARKS}
    cases = sum(each["kind"] != "apart" for row in data["pairs"].values() for each in row.get("but", []))
    works = sum("works" in row for row in data["pairs"].values())
    lines = [f"{len(data['pairs'])} pairs: {works} work, {count['refused']} are refused, {count['left_out']} are left out, "
             f"{count['apart']} are apart and {count['untested']} are not shown.", f"{cases} cases of pairs that "
             "work are refused or left out.", "", *matrix(data), "", "## What is refused or left out", "",
             "| Pair | | Sentence | Why |", "|---|---|---|---|"]
    for pair, row in rows_of(data, "refused", "left_out"):
        lines.append(f"| {title_of(data, pair, row)} | {WORDS[row['kind']]} | {sentence_of(row)} | {row['reason']} |")
    lines += ["", "## What is apart", "", "| Pair | Why |", "|---|---|"]
    lines += [f"| {title_of(data, pair, row)} | {row['reason']} |" for pair, row in rows_of(data, "apart")]
    lines += ["", "## What is not shown", "", "| Pair | A test would need |", "|---|---|"]
    lines += [f"| {title_of(data, pair, row)} | {row['needs']} |" for pair, row in rows_of(data, "untested")]
    lines += ["", "## The tests", "", "| Pair | Shown by |", "|---|---|"]
    for pair, row in data["pairs"].items():
        for each in [row, *row.get("but", [])]:
            tests = each.get("works", []) + each.get("tests", [])
            if tests:
                lines.append(f"| {title_of(data, pair, each)} | {', '.join(f'`{test}`' for test in tests)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    data = json.loads(read(pathlib.Path(DATA)))
    try:
        hold(data, Repository())
    except Wrong as wrong:
        sys.exit(f"features: {wrong}.")
    if not generated_page.hold("features.py", PAGE, make(data), write):
        sys.exit(f"{PAGE} is not what {DATA} says; tests/docs/features.py --write renews it.")


if __name__ == "__main__":
    main()
