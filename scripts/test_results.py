"""Counts the tests of a JUnit file of ctest: test_results.py RESULTS. Prints "PASSED FAILED SKIPPED" in the first line, then
a line for each reason to skip, with the tests that had it.

Cases that a GoogleTest or unittest program skips are counted one by one; a program that skips all its cases has not passed.
"""

import collections
import re
import sys
import xml.etree.ElementTree

GTEST = re.compile(r"^\S+:\d+: Skipped\n(?P<reason>.*?)\n*^\[  SKIPPED \] (?P<case>\S+)", re.M | re.S)
UNITTEST = re.compile(r"^(?P<case>\S+) \(.*\.\.\. (?:.*\n)?skipped ['\"](?P<reason>.*)['\"]$", re.M)
WHOLE = re.compile(r"^skipped: (?P<reason>.*)$", re.M)
MOST_NAMES = 6


def first_line(text):
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")


def cases(output):
    """Returns (case, reason) of every test case that a program reports as skipped."""
    found = [(match["case"], first_line(match["reason"])) for match in GTEST.finditer(output)]
    found += [(match["case"], match["reason"]) for match in UNITTEST.finditer(output)]
    return found or [("", match["reason"]) for match in WHOLE.finditer(output)]


def main():
    passed = failed = 0
    skipped = collections.defaultdict(list)
    for test in xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        name, status = test.get("name"), test.get("status")
        output = test.findtext("system-out") or ""
        absent = test.find("skipped") is not None and "SKIP_RETURN_CODE" in test.find("skipped").get("message", "")
        for case, reason in cases(output) or ([("", "no reason given")] if absent else []):
            skipped[reason].append(f"{name}: {case}" if case else name)
        if absent or status == "disabled":
            continue
        if status != "run":
            failed += 1
        elif "[  PASSED  ] 0 tests." not in output:
            passed += 1
    print(passed, failed, sum(map(len, skipped.values())))
    for reason, tests in sorted(skipped.items()):
        more = f" and {len(tests) - MOST_NAMES} more" if len(tests) > MOST_NAMES else ""
        print(f"skipped: {reason} ({', '.join(tests[:MOST_NAMES])}{more})")


main()
