"""install_files.py on a small zip: what package managers read says the zip's address and its SHA-256."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "install_files.py")
ADDRESS = "https://example.org/doppler/releases/download/v1.2.3/doppler-1.2.3-windows-x86_64.zip"


class InstallFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, version):
        return subprocess.run([sys.executable, PROGRAM, "--version", version, "--repository", "https://example.org/doppler/",
                               "--packages", self.folder, "--out", self.folder], capture_output=True, text=True, check=False)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def test_they_say_where_the_zip_is_and_what_it_holds(self):
        with open(os.path.join(self.folder, "doppler-1.2.3-windows-x86_64.zip"), "wb") as file:
            file.write(b"a zip")
        sha256 = hashlib.sha256(b"a zip").hexdigest()
        self.assertEqual(self.write("1.2.3").returncode, 0)
        scoop = json.loads(self.read("scoop/doppler.json"))
        self.assertEqual(scoop["architecture"]["64bit"], {"url": ADDRESS, "hash": sha256})
        self.assertEqual(scoop["bin"], "bin\\doppler.exe")
        installer = self.read("winget/Doppler.Doppler.installer.yaml").splitlines()
        for line in (f"  InstallerUrl: {ADDRESS}", f"  InstallerSha256: {sha256.upper()}", "PackageVersion: 1.2.3",
                     "- RelativeFilePath: doppler-1.2.3\\bin\\doppler.exe", "ManifestType: installer"):
            self.assertIn(line, installer)
        for name in ("", ".locale.en-US"):
            self.assertIn("PackageVersion: 1.2.3\n", self.read(f"winget/Doppler.Doppler{name}.yaml"))

    def test_a_missing_zip_is_named(self):
        done = self.write("1.2.3")
        self.assertEqual(done.returncode, 1)
        self.assertIn("There is no ", done.stderr)


if __name__ == "__main__":
    unittest.main()
