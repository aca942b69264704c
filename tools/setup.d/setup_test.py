"""tools/setup: several parts at once, and no part if one name is unknown. Installs nothing."""
import os
import pathlib
import subprocess
import unittest

SETUP = pathlib.Path(__file__).resolve().parents[1] / "setup"


def run(*parts):
    return subprocess.run([SETUP, *parts], env={**os.environ, "DOPPLER_SETUP": "0"}, capture_output=True, text=True, check=False)


class Parts(unittest.TestCase):
    def test_an_unknown_part_is_named_before_any_other_is_looked_at(self):
        for parts in (["nonsense"], ["--help", "nonsense"]):
            done = run(*parts)
            self.assertEqual(done.returncode, 1)
            self.assertIn('"nonsense"', done.stderr)
            self.assertEqual(done.stdout, "")

    def test_each_part_is_done(self):
        self.assertEqual(run("--help", "--help").stdout, 2 * run("--help").stdout)


if __name__ == "__main__":
    unittest.main()
