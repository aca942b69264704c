"""The story runner on stories about shell commands: each must pass or fail as its row says."""

import contextlib
import io
import os
import tempfile
import unittest

import run_stories

# name, story text, exit status of the runner, a piece of what it prints
ROWS = [
    ("exact", "== t\n$ echo a; echo b\na\nb\n", 0, "1 passed, 0 failed, 0 skipped"),
    ("standard_error_counts", "== t\n$ echo a >&2\na\n", 0, "1 passed"),
    ("wrong_line", "== t\n$ echo a\nb\n", 1, "printed\n  a\ninstead of\n  b"),
    ("missing_line", "== t\n$ echo a\na\nb\n", 1, "0 passed, 1 failed"),
    ("extra_line", "== t\n$ echo a; echo b\na\n", 1, "0 passed, 1 failed"),
    ("nothing_expected", "== t\n$ echo a\n", 1, "0 passed, 1 failed"),
    ("empty_lines_at_the_end", "== t\n$ echo a; echo\na\n\n\n$ true\n", 0, "1 passed"),
    ("regex", "== t\n$ echo took 12 ms\n~took \\d+ ms\n", 0, "1 passed"),
    ("regex_matches_the_whole_line", "== t\n$ echo took 12 ms\n~took\n", 1, "1 failed"),
    ("any_lines", "== t\n$ seq 9\n1\n...\n5\n...\n9\n", 0, "1 passed"),
    ("any_lines_may_be_none", "== t\n$ seq 2\n1\n...\n2\n...\n", 0, "1 passed"),
    ("any_lines_then_missing", "== t\n$ seq 9\n...\n10\n", 1, "1 failed"),
    ("escaped", "== t\n$ echo '...'; echo '~x'\n\\...\n\\~x\n", 0, "1 passed"),
    ("exit_status", "== t\n$ exit 3\nexit 3\n", 0, "1 passed"),
    ("wrong_exit_status", "== t\n$ exit 3\n", 1, "exit status 3 instead of 0"),
    ("one_folder_a_story", "== a\n$ echo x > f\n$ cat f\nx\n== b\n$ ls\n", 0, "2 passed"),
    ("stops_at_the_first_failure", "== t\n$ false\n$ echo never\n", 1, "t.story:2: $ false"),
    ("needs_what_is_there", "== t\nneeds model\n$ true\n", 0, "1 passed"),
    ("needs_what_is_missing", "== t\nneeds moon\n$ false\n", 0, "skipped [plain] t: needs moon\n"),
    ("configurations", "== t\n$ echo with $FLAGS $COLOUR\n~with( --fast blue)?\n", 0, "2 passed"),
    ("no_title", "$ true\n", 2, "t.story:1: a story opens with a line"),
    ("no_command", "== t\n", 2, "has no command"),
]


class RunStoriesTest(unittest.TestCase):
    def run_one(self, story, *arguments, program="/bin/true"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.story")
            configs = os.path.join(folder, "configs")
            with open(path, "w", encoding="utf-8") as file:
                file.write(story)
            with open(configs, "w", encoding="utf-8") as file:
                file.write("plain | | | |\ncoloured | COLOUR=blue | --fast | webgpu |\nother | | | | other\n")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                status = run_stories.main(["--doppler", program, "--configs", configs, "--have", "model",
                                           *arguments, path])
            return status, printed.getvalue()

    def test_rows(self):
        for name, story, status, piece in ROWS:
            with self.subTest(name):
                arguments = [] if name == "configurations" else ["--config", "plain"]
                actual, printed = self.run_one(story, *arguments)
                self.assertEqual((actual, piece in printed), (status, True), printed)

    def test_without_a_device_only_an_optional_configuration_skips(self):
        # /bin/false stands for a program whose `devices` fails.
        story = "== t\nneeds webgpu\n$ true\n"
        self.assertIn("skipped [coloured] t: needs webgpu (no device)\n1 passed, 0 failed, 1 skipped",
                      self.run_one(story, program="/bin/false")[1])
        self.assertIn("2 passed, 0 failed, 0 skipped", self.run_one(story)[1])

    def test_an_unknown_configuration_is_named(self):
        status, printed = self.run_one("== t\n$ true\n", "--config", "purple")
        self.assertEqual((status, printed), (2, "Unknown configuration purple; known are: plain, coloured, other.\n"))


if __name__ == "__main__":
    unittest.main()
