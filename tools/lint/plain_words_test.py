"""plain_words.py on small texts: which sentences it finds, and which words it leaves alone."""  # plain: ok

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import plain_words  # noqa: E402

# Text of a page, and the patterns that it must hit.
PROSE = [
    ("Of GPUs two were measured.", ["opens-with-of"]),
    ("Of course it runs.", []),
    ("What a row is stands in tables.", ["opens-with-question"]),
    ("What is a row?", []),
    ("How to install it is on another page.", []),
    ("Whether the device is lost.", []),
    ("It decodes behind 512 tokens.", ["behind-for-after"]),
    ("The server runs behind a reverse proxy.", []),
    ("In the lane exact alone the text is the same.", ["alone-for-only"]),
    ("It stands alone.", []),
    ("Where there is no GPU it is slow.", ["where-there-is"]),
    ("It is slow where there\nis no GPU.", ["where-there-is"]),
    ("Texts go to the model as they are.", ["as-it-was"]),
    ("Tokens come as they are generated.", []),
    ("Lost there: 64 prompt tokens.", ["elided-opening"]),
    ("But not on a CPU.", ["fragment"]),
    ("But it runs on a CPU.", []),
    ("One thing; another thing; a third thing; a fourth.", ["semicolon-chain"]),
    ("It makes 5,735 tok/s (6,982, 6,871).", ["bracketed-figures"]),
    ("Then nothing is copied.", ["negated-subject"]),
    ("The cache is f16, and so is the query.", []),
    ("The cache is f16; so is the query.", ["inverted-verb"]),
    ("The one that reads that which that writes.", ["that-chain"]),
    ("It keeps two of them.", ["of-them"]),
    ("More was not done; 1,600 were asked for.", ["asked-for"]),
    ("`behind` and \"of them\" are names.", []),
    ("It stands behind it. plain: ok", []),
    ("A sentence that is whole. It has a verb.", []),
    ("```\nbehind in code\n```", []),
    ("| cell | behind 512 tokens |", ["behind-for-after"]),
    ("| What it is | Of it |", []),
    ("<!-- tables: a program -->\nbehind\n<!-- end of tables -->", []),
]
COMMENTS = [
    (".cpp", "int x;  // nobody reads behind it\n", ["behind-for-after", "negated-subject"]),
    (".cpp", "// The sums, for which a\n// subgroup needs no barrier.\n", []),
    (".cpp", "const char* s = \"behind\";\n", []),
    (".cpp", "// if (a) { print(a); } print(b); print(c);\n", []),
    (".mjs", "/** What a call gives. @param {any} behind it */\n", ["opens-with-question"]),
    (".py", "# Of each plan its digest.\nx = '''behind'''\n", ["opens-with-of"]),
    (".py", "def f():\n    \"\"\"How it works with it.\n      behind: a usage line\"\"\"\n", ["opens-with-question"]),
    (".py", "x = \"\"\"\nbehind\n\"\"\"\n", []),
    (".sh", "#!/bin/sh\n# What is there.\necho behind\n", ["opens-with-question"]),
]


def patterns(kind, text):
    found = set()
    for _, sentence, cell in plain_words.sentences(plain_words.READERS[kind](text)):
        found |= set(plain_words.hits_of(sentence, cell))
    return sorted(found)


class PlainWordsTest(unittest.TestCase):
    def test_prose(self):
        for text, wanted in PROSE:
            with self.subTest(text):
                self.assertEqual(patterns(".md", text), sorted(wanted))

    def test_comments(self):
        for kind, text, wanted in COMMENTS:
            with self.subTest(text):
                self.assertEqual(patterns(kind, text), sorted(wanted))

    def test_a_hit_names_the_line_where_its_sentence_begins(self):
        lines = plain_words.READERS[".md"]("First line.\nIt goes on. What\nis behind it.\n")
        self.assertEqual([number for number, sentence, _ in plain_words.sentences(lines) if "behind" in sentence], [2])

    def test_long_lines_count_if_they_have_words(self):
        text = "x" * 130 + "\n# " + "y " * 70 + "\n# http://" + "z" * 130 + "\n"
        self.assertEqual([number for number, _ in plain_words.long_lines(text, {2, 3})], [2])

    def test_limits_are_of_paths_that_exist(self):
        for path, _, unit, _ in plain_words.limits():
            self.assertTrue(pathlib.Path(path).exists(), path)
            self.assertIn(unit, ("in-1000", "hits"))


if __name__ == "__main__":
    unittest.main()
