"""A page of docs/ with a part between two marks that a program's own words or data make: held to them, or renewed with
--write."""

import argparse
import sys


def hold(script, page, made, write):
    """True if `made` stands between the marks of `page`, or if --write has put it there."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    begin_mark, end_mark = f"<!-- tables: tests/docs/{script} --write -->", "<!-- end of tables -->"
    begin, end = text.index(begin_mark) + len(begin_mark), text.index(end_mark)
    wanted = text[:begin] + "\n" + made + "\n" + text[end:]
    if write:
        with open(page, "w", encoding="utf-8") as file:
            file.write(wanted)
    return write or text == wanted


def run(script, page, doc, make):
    """The command line of tests/docs/`script`: --doppler PROGRAM [--write]. make(program) returns what stands between
    the marks of `page`. Ends with a message where the page says something else and --write is not given."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--doppler", required=True)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    if not hold(script, page, make(args.doppler), args.write):
        sys.exit(f"{page} is not what the program says; tests/docs/{script} --doppler PROGRAM --write renews it.")
