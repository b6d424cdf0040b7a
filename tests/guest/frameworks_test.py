"""TensorFlow 2, PyTorch and Lockstep in one report: examples/any_program on processes of this machine, with the packages
of bench/peers from a registry. Skipped where none can be reached.
usage: frameworks_test.py LOCKSTEP"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = sys.argv[1]
SKIPPED = 77
VENV = ROOT / "build/peers-venv"
DATA = pathlib.Path("/usr/share/datasets")


def prepare():
    if not (DATA / "fashion-mnist").is_dir():
        print("skipped: the package dataset-fashion-mnist is missing")
        sys.exit(SKIPPED)
    sys.path.insert(0, str(ROOT / "bench/peers"))
    import environment
    try:
        environment.prepare_venv(VENV, ROOT / "bench/peers/requirements.txt")
    except environment.SetupError as error:
        print(f"skipped: {error}")
        sys.exit(SKIPPED)


def main():
    prepare()
    paths = {**os.environ, "PATH": f"{VENV}/bin:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as folder:
        def lockstep(*words):
            done = subprocess.run([PROGRAM, "lab", *words], cwd=folder, env=paths, capture_output=True, text=True)
            assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
            return done.stdout

        lockstep("run", str(ROOT / "examples/any_program/programs.yaml"), "--scale", "quick", "--local", "--retries", "0")
        runs = {run["label"]: run for run in json.loads(lockstep("export", "programs", "--to", "json", "--workers"))["runs"]}
        assert runs.keys() == {"PyTorch", "TensorFlow", "Lockstep"}
        for label, run in runs.items():
            measured = run["measured"]
            assert measured["accuracy"] > 0.75, f"{label}: accuracy {measured['accuracy']}"
            assert abs(measured["accuracy"] - runs["Lockstep"]["measured"]["accuracy"]) < 0.04, label
            assert measured["examples_per_second"] > 0 and measured["memory"] > 1e6, label
            assert measured["steps"] in (468, 469), f"{label}: {measured['steps']} steps"
            assert len(run["roles"]) == 2, label
        page = (pathlib.Path(folder) / "lab/programs-quick/report.html").read_text()
        assert all(label in page for label in runs)


main()
