"""tools/setup: several parts at once, and no part if one name is unknown. Installs nothing."""
import os
import pathlib
import subprocess
import tempfile
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

    def test_a_held_lock_of_apt_is_waited_for(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = pathlib.Path(folder)
            # Each command of apt meets the lock once.
            scripts = {
                "apt-get": 'case "$*" in *" update"*) verb=update ;; *) verb=install ;; esac\n'
                           '[ -e "$0.$verb" ] && exit 0; touch "$0.$verb"\n'
                           'echo "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1 (apt-get)" >&2; exit 100',
                "dpkg-query": "exit 1", "apt-cache": "exit 0", "sudo": '[ "$1" = -n ] && shift; exec "$@"',
            }
            for name, script in scripts.items():
                (programs / name).write_text(f"#!/bin/sh\n{script}\n")
                (programs / name).chmod(0o755)
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "DOPPLER_DEPS_DIR": folder, "DOPPLER_LOCK_PAUSE": "0.1"}
            done = subprocess.run([SETUP, "lint"], env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("waiting for another program"), 2)
            self.assertTrue((programs / "apt-get.install").exists())


if __name__ == "__main__":
    unittest.main()
