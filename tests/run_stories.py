"""Runs stories: text files of commands and what they must print. A stranger can add one without knowing Python.
  run_stories.py --doppler PROGRAM [--configs FILE] [--config NAME]... [--have NAME]... FILE.story...

A story file:
  == title            opens a story: its commands share one empty folder and a shell environment
  needs NAME          the story is skipped unless --have NAME was given; `needs webgpu`: see tests/stories/configs
  $ command           run by sh with `doppler` on the PATH; $FLAGS holds the configuration's flags
  expected output     standard output and errors together, line by line, exactly; among them
  ~regex                a line that matches the whole regular expression
  ...                   any number of lines, also none
  \\text                 a line that starts with one of these signs
  exit N              the command's exit status (0 if the line is missing)
  # text              outside an output: a comment
Empty lines at the end of an output do not count. tests/stories/configs names the configurations a suite is run
under. Ends with `N passed, N failed, N skipped`; exit status 1 if a story failed. Tested by run_stories_test.py."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

COMMAND_SECONDS = 300  # a story that takes longer has hung


@dataclass
class Step:
    command: str
    line: int
    expected: list = field(default_factory=list)
    exit_code: int = 0


@dataclass
class Story:
    title: str
    path: str
    line: int
    needs: list = field(default_factory=list)
    steps: list = field(default_factory=list)


@dataclass
class Config:
    name: str
    env: dict
    flags: str
    optional: str = ""  # "webgpu": without a device, stories that need one are skipped
    files: list = field(default_factory=list)  # names of the story files it runs; empty: all


def parse_stories(text, path):
    stories = []
    for number, line in enumerate(text.splitlines(), 1):
        story = stories[-1] if stories else None
        step = story.steps[-1] if story and story.steps else None
        if line.startswith("== "):
            stories.append(Story(line[3:].strip(), path, number))
        elif story is None:
            if line and not line.startswith("#"):
                raise ValueError(f"{path}:{number}: a story opens with a line \"== title\", not with {line!r}.")
        elif line.startswith("$ "):
            story.steps.append(Step(line[2:], number))
        elif step is None:
            if line.startswith("needs "):
                story.needs += line.split()[1:]
            elif line and not line.startswith("#"):
                raise ValueError(f"{path}:{number}: expected \"$ command\", \"needs NAME\" or a comment, not {line!r}.")
        elif re.fullmatch(r"exit \d+", line):
            step.exit_code = int(line[5:])
        else:
            step.expected.append(line)
    for story in stories:
        if not story.steps:
            raise ValueError(f"{path}:{story.line}: the story \"{story.title}\" has no command.")
        for step in story.steps:
            while step.expected and not step.expected[-1]:
                step.expected.pop()
    return stories


def parse_configs(text, path):
    """Rows `name | VARIABLE=value ... | flags | optional | names of story files`."""
    configs = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = [column.strip() for column in line.split("|")]
        if len(columns) != 5 or columns[3] not in ("", "webgpu") or not all("=" in w for w in columns[1].split()):
            raise ValueError(f"{path}:{number}: expected `name | VARIABLE=value ... | flags | optional | files`, "
                             f"not {line!r}.")
        env = dict(word.split("=", 1) for word in columns[1].split())
        configs.append(Config(columns[0], env, columns[2], columns[3], columns[4].split()))
    return configs


def line_matches(expected, actual):
    if expected.startswith("~"):
        return re.fullmatch(expected[1:], actual) is not None
    return actual == (expected[1:] if expected.startswith("\\") else expected)


def output_matches(expected, actual):
    """True if the lines match; `...` stands for any number of lines."""
    reachable = {0}  # how many actual lines may have been used up by the expected ones so far
    for line in expected:
        if line == "...":
            reachable = set(range(min(reachable), len(actual) + 1)) if reachable else set()
        else:
            reachable = {at + 1 for at in reachable if at < len(actual) and line_matches(line, actual[at])}
    return len(actual) in reachable


def environment(config, program):
    env = os.environ | config.env
    env["PATH"] = os.path.dirname(os.path.abspath(program)) + os.pathsep + env["PATH"]
    env.update(FLAGS=config.flags, LC_ALL="C.UTF-8", ROOT=os.getcwd())
    return env


def why_no_device(config, program):
    """None if stories that need a device can run; else the reason, where the configuration lets them be skipped."""
    if config.optional != "webgpu":
        return None
    done = subprocess.run([program, "devices"], env=environment(config, program), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=COMMAND_SECONDS)
    return None if done.returncode == 0 else done.stdout.decode("utf-8", "replace").strip() or "no device"


def run_story(story, config, program):
    """The fault as a sentence, or None."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(config, program)
        for step in story.steps:
            try:
                done = subprocess.run(["sh", "-c", step.command], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=COMMAND_SECONDS)
            except subprocess.TimeoutExpired:
                return f"{story.path}:{step.line}: $ {step.command}\nran for more than {COMMAND_SECONDS} s."
            actual = done.stdout.decode("utf-8", "replace").splitlines()
            while actual and not actual[-1]:
                actual.pop()
            wrong = []
            if not output_matches(step.expected, actual):
                wrong += ["printed", *("  " + line for line in actual[:200]),
                          "instead of", *("  " + line for line in step.expected)]
            if done.returncode != step.exit_code:
                wrong.append(f"exit status {done.returncode} instead of {step.exit_code}")
                if wrong[0] != "printed":
                    wrong += ["printed", *("  " + line for line in actual[:200])]
            if wrong:
                return "\n".join([f"{story.path}:{step.line}: $ {step.command}", *wrong])
    return None


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description="Runs story files against the doppler program.")
    parser.add_argument("--doppler", required=True, help="the program")
    parser.add_argument("--configs", help="file of configurations; without it one without variables and flags")
    parser.add_argument("--config", action="append", help="only this configuration; may be repeated")
    parser.add_argument("--have", action="append", default=[], help="what `needs` may ask for; may be repeated")
    parser.add_argument("stories", nargs="+")
    return parser.parse_args(arguments)


def read(path, parse):
    with open(path, encoding="utf-8") as file:
        return parse(file.read(), path)


def main(arguments):
    args = parse_arguments(arguments)
    try:
        stories = [story for path in args.stories for story in read(path, parse_stories)]
        configs = read(args.configs, parse_configs) if args.configs else [Config("default", {}, "")]
    except (OSError, ValueError) as error:
        print(error)
        return 2
    unknown = set(args.config or []) - {config.name for config in configs}
    if unknown:
        print(f"Unknown configuration {', '.join(sorted(unknown))}; known are: {', '.join(c.name for c in configs)}.")
        return 2
    passed = failed = skipped = 0
    for config in configs:
        if args.config and config.name not in args.config:
            continue
        no_device = why_no_device(config, args.doppler)
        for story in stories:
            if config.files and os.path.basename(story.path).removesuffix(".story") not in config.files:
                continue
            missing = [name for name in story.needs if name not in args.have and name != "webgpu"]
            if no_device and "webgpu" in story.needs:
                missing.append(f"webgpu ({no_device})")
            if missing:
                skipped += 1
                print(f"skipped [{config.name}] {story.title}: needs {', '.join(missing)}")
                continue
            wrong = run_story(story, config, args.doppler)
            failed += wrong is not None
            passed += wrong is None
            if wrong:
                print(f"FAILED [{config.name}] {story.title}\n{wrong}\n")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
