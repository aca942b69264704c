"""unpack_wheel.py on a small wheel: single files, and a folder whose programs stay programs."""

import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unpack_wheel.py")


class UnpackWheel(unittest.TestCase):
    def test_files_and_folders_go_where_the_rows_say(self):
        with tempfile.TemporaryDirectory() as folder:
            wheel = os.path.join(folder, "a.whl")
            with zipfile.ZipFile(wheel, "w") as archive:
                for name, rights in {"a/one.txt": 0o644, "a/b/program": 0o755, "c/two.txt": 0o644}.items():
                    info = zipfile.ZipInfo(name)
                    info.external_attr = rights << 16
                    archive.writestr(info, name)
            rows = "a|a/|here\na|c/two.txt|there/2\n"
            subprocess.run([sys.executable, PROGRAM, wheel, folder], input=rows, text=True, check=True)
            self.assertTrue(os.access(os.path.join(folder, "here/b/program"), os.X_OK))
            for path, text in {"here/one.txt": "a/one.txt", "here/b/program": "a/b/program", "there/2": "c/two.txt"}.items():
                with open(os.path.join(folder, path), encoding="utf-8") as file:
                    self.assertEqual(file.read(), text)
            self.assertFalse(os.path.exists(os.path.join(folder, "here/two.txt")))


if __name__ == "__main__":
    unittest.main()
