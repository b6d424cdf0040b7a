"""A study in its quick form: every run succeeds, every finding is judged or says why not, and those that hold on any
machine hold.
usage: study_test.py LOCKSTEP NUMBER"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, NUMBER = sys.argv[1], int(sys.argv[2])
EXPERIMENT = pathlib.Path(__file__).parents[2] / "experiments" / f"study-{NUMBER}.yaml"
# Reason why studies cannot use emulated nodes here; they then use processes of this machine.
WHY_LOCAL = json.loads(subprocess.run([PROGRAM, "info", "--json"], capture_output=True, check=True).stdout)["emulate"]
if len(os.sched_getaffinity(0)) < 2:
    WHY_LOCAL = "no: the nodes of the studies do not fit into one core"
LOCAL = WHY_LOCAL != "yes"
HAS_MNIST = (pathlib.Path(os.environ.get("LOCKSTEP_DATA", "")) / "mnist").is_dir()

# Finding -> its tests that must hold: those that count bytes, iterations or bits rather than time. One run decides them.
MUST_HOLD = {
    1: {},
    2: {"accuracy of workers": [0]},
    3: {"network and batch": [1]},
    4: {"sync iterations": [0]},
    5: {"heaviest network": [0]},
}
# Group -> minimum accuracy of its runs; real MNIST only.
LEAST_ACCURACY = {2: {"workers": 0.8, "sum": 0.8}, 3: {"lr": 0.9, "lenet": 0.95}, 4: {"lr": 0.87, "lenet": 0.85}}


def lockstep(*arguments):
    done = subprocess.run([PROGRAM, "lab", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"lockstep lab {' '.join(arguments)}: code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def check_runs(results):
    for run in results["runs"]:
        assert run["state"] == "done", f"{run['key']}: {run['state']}, {run['reason']}"
        assert run["measured"]["steps"] > 0, run["key"]
        least = LEAST_ACCURACY.get(NUMBER, {}).get(run["group"], 0) if HAS_MNIST else 0
        assert run["measured"].get("accuracy", 1) >= least, f"{run['key']}: accuracy {run['measured']['accuracy']}"
        if run["settings"].get("mode") == "sync" and len(run["roles"]) > 2:
            iterations = {role["measured"]["iterations"] for role in run["roles"] if "iterations" in role["measured"]}
            assert len(iterations) == 1, f"{run['key']}: sync workers made {iterations} iterations"


def check_findings(results):
    assert results["findings"]
    by_name = {finding["name"]: finding for finding in results["findings"]}
    for finding in results["findings"]:
        said = " ".join(finding["sentences"])
        if LOCAL and "on the machine" in said:
            continue  # it compares machines, and here all roles share one
        with_reason = "one run, no interval" in said or "Not judged here: " in said
        assert finding["verdict"] != "not judged" or with_reason, finding
        assert finding["sentences"] and finding["reasons"], finding
    for name, tests in MUST_HOLD[NUMBER].items():
        for test in tests if not LOCAL or NUMBER != 5 else []:  # layouts differ only on separate nodes
            sentence = by_name[name]["sentences"][test]
            assert re.search(r": holds( in (all \d+|both) cases)?\.$", sentence), f"{name}: {sentence}"


def check_report(path, results):
    page = path.read_text()
    assert page.count("<html") == 1 and page.rstrip().endswith("</html>")
    assert "http://" not in page.replace("http://www.w3.org/", "") and "https://" not in page
    for run in results["runs"]:
        assert run["key"] in page, run["key"]
    assert "This experiment has no run for it" not in page
    charts = json.loads(re.search(r'<script[^>]*id="charts"[^>]*>(.*?)</script>', page, re.S).group(1))
    assert charts
    for chart in charts:
        points = [y for series in chart["series"] for y in series["y"] if y is not None]
        assert points or chart["spans"], f"{chart['id']} has no data"


def main():
    arguments = ["--local"] if LOCAL else []
    if not HAS_MNIST:
        if NUMBER != 3:
            print("skipped: this study needs MNIST, which is not here")
            return 77
        arguments += ["--set", "dataset=fashion-mnist"]
    with tempfile.TemporaryDirectory(prefix=f"study-{NUMBER}-") as folder:
        lab = ["--lab-dir", folder]
        lockstep("run", str(EXPERIMENT), "--scale", "quick", "--retries", "0", *lab, *arguments)
        results = json.loads(lockstep("show", f"study-{NUMBER}", *lab, "--json"))
        check_runs(results)
        check_findings(results)
        check_report(pathlib.Path(folder, f"study-{NUMBER}-quick", "report.html"), results)
        again = lockstep("run", str(EXPERIMENT), "--scale", "quick", *lab, *arguments)
        assert f"{len(results['runs'])} done before" in again, again
    if LOCAL:
        print(f"skipped: emulated nodes (run with --local): {WHY_LOCAL.removeprefix('no: ')}")
    print(f"study {NUMBER}: {len(results['runs'])} runs,",
          ", ".join(f"{finding['name']}: {finding['verdict']}" for finding in results["findings"]))
    return 0


sys.exit(main())
