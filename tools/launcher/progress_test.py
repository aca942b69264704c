"""The launcher's progress appears while the build runs, not when it is over (show_progress in build.sh)."""

import select
import subprocess
import unittest

TIMEOUT_S = 20  # a busy machine may be slow; a line that waits for the build's end never comes


class ProgressTest(unittest.TestCase):
    def test_a_line_appears_before_the_build_is_over(self):
        with subprocess.Popen(["bash", "-c", ". tools/launcher/build.sh; show_progress"], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as shell:
            shell.stdin.write("Re-checking globbed directories\n[1/40] first\n[4/40] a tenth\n")
            shell.stdin.flush()
            self.assertTrue(select.select([shell.stdout], [], [], TIMEOUT_S)[0], "no line while the build runs")
            self.assertEqual(shell.stdout.readline(), "build: 4 of 40 steps\n")
            shell.stdin.close()
            self.assertEqual(shell.stdout.read(), "")


if __name__ == "__main__":
    unittest.main()
