"""The derived apt source for each way a machine may write its own. A new way is a row of ROWS."""

import os
import tempfile
import unittest

from backports_source import backports

WANTED = "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-backports\nComponents: main\n"
KEY = "Signed-By: /usr/share/keyrings/k.gpg\n"
ROWS = [
    ("one_line", "sources.list", "deb http://mirror.example/debian bookworm main contrib\n", WANTED),
    ("one_line_with_options", "sources.list.d/a.list",
     "deb [arch=amd64 signed-by=/usr/share/keyrings/k.gpg] http://mirror.example/debian bookworm main\n", WANTED + KEY),
    ("deb822", "sources.list.d/debian.sources",
     "# first\nTypes: deb deb-src\n# a remark\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n"
     "Components: main\nSigned-By: /usr/share/keyrings/k.gpg\n\nTypes: deb\nURIs: http://other.example\n"
     "Suites: bookworm-security\nComponents: main\n", WANTED + KEY),
    ("commented_out", "sources.list", "# deb http://mirror.example/debian bookworm main\n", None),
    ("disabled", "sources.list.d/x.sources",
     "Enabled: no\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n", None),
    ("sources_only", "sources.list", "deb-src http://mirror.example/debian bookworm main\n", None),
    ("other_suite", "sources.list", "deb http://mirror.example/debian trixie main\n", None),
]


class BackportsSourceTest(unittest.TestCase):
    def test_rows(self):
        for name, path, text, expected in ROWS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                os.makedirs(os.path.join(folder, "sources.list.d"))
                with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                    file.write(text)
                self.assertEqual(backports("bookworm", folder), expected)


if __name__ == "__main__":
    unittest.main()
