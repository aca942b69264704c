"""Each kind of ctest entry and its counts. A new kind is a row of CASES."""

import unittest

import summarise_tests

GTEST = """[==========] Running 5 tests from 1 test suite.
src/a_test.cpp:7: Skipped
no subgroups on this device
[==========] 5 tests from 1 test suite ran. (3 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] A.B
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] A.C
"""
ALL_PASSED = "[==========] 3 tests from 2 test suites ran. (3 ms total)\n[  PASSED  ] 3 tests.\n"
CASES = [
    ("gtest", "fail", GTEST, (2, 2, 1)),
    ("gtest_passing", "run", ALL_PASSED, (3, 0, 0)),
    ("gtest_crashing_at_exit", "fail", ALL_PASSED, (3, 1, 0)),
    ("crash_before_any_report", "fail", "[ RUN      ] A.B\n", (0, 1, 0)),
    ("stories", "run", "12 passed, 0 failed, 4 skipped\n", (12, 0, 4)),
    ("unittest", "run", "Ran 3 tests in 0.1s\n\nOK\n", (3, 0, 0)),
    ("unittest_failing", "fail", "Ran 3 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n", (1, 2, 0)),
    ("plain_program", "run", "fine\n", (1, 0, 0)),
    ("plain_program_failing", "fail", "bad\n", (0, 1, 0)),
    ("disabled", "disabled", "", (0, 0, 1)),
]


def junit(rows):
    cases = "".join(f'<testcase name="{name}" status="{status}"><system-out>{output}</system-out></testcase>'
                    for name, status, output, _ in rows)
    return f"<testsuite>{cases}</testsuite>"


class SummariseTestsTest(unittest.TestCase):
    def test_each_kind_is_counted(self):
        for row in CASES:
            with self.subTest(row[0]):
                self.assertEqual(summarise_tests.summarise(junit([row]))[:3], row[3])

    def test_counts_add_up_and_failures_are_named(self):
        passed, failed, skipped, names, reasons, ran = summarise_tests.summarise(junit(CASES))
        self.assertEqual((passed, failed, skipped), tuple(sum(row[3][i] for row in CASES) for i in range(3)))
        self.assertEqual(names[0], "gtest")
        self.assertEqual(reasons, {"no subgroups on this device": 1, "not run": 1})
        self.assertEqual(ran, {row[0] for row in CASES} - {"disabled"})

    def test_an_entry_whose_cases_are_in_another_share_counts_as_run(self):
        nothing = "[==========] Running 0 tests from 0 test suites.\n[==========] 0 tests from 0 test suites ran. (0 ms total)\n"
        rows = [("whole", "run", nothing, (0, 0, 0)),
                ("share", "run", "Note: This is test shard 2 of 2.\n" + nothing, (0, 0, 0))]
        self.assertEqual(summarise_tests.summarise(junit(rows))[-1], {"share"})

    def test_a_required_group_runs_whole(self):
        listing = """{"tests": [{"name": "a", "properties": [{"name": "LABELS", "value": ["web", "story"]}]},
                                {"name": "b", "properties": [{"name": "LABELS", "value": ["web"]}]},
                                {"name": "c"}]}"""
        labels = summarise_tests.labels_of(listing)
        self.assertEqual(list(summarise_tests.missing(["story", "web", "lint"], labels, {"a", "c"})),
                         ["group web: b ran no case", "group lint: this build has no test of it"])


if __name__ == "__main__":
    unittest.main()
