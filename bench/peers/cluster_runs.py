"""Trainings on a cluster of processes on loopback, ours and TensorFlow's, and figures from their output."""

import contextlib
import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import environment

BATCH = {"lr": 100, "lenet": 64}
LEARNING_RATE = {"lr": 0.01, "lenet": 0.001}
WARM_UP_SHARE = 0.2  # share of a run's measured time: start-up, caches, thread pools
GRACE = 30  # seconds that a run of ours may take beyond its training


class Ours:
    """`lockstep train` with roles on this machine."""

    def __init__(self, program, data):
        self.program = program
        self.environ = {**os.environ, "LOCKSTEP_DATA": str(data)}

    def train(self, model, seconds, workers, *options, steps=0):
        """A training by time, or by steps with `seconds` as its limit; returns the summary with a few more figures."""
        folder = tempfile.mkdtemp(prefix="lockstep-bench-")
        run_dir = f"{folder}/run"
        end = ["--steps", str(steps)] if steps else ["--seconds", str(seconds)]
        command = [str(self.program), "train", model, "--batch", str(BATCH[model]), "--lr", str(LEARNING_RATE[model]),
                   "--workers", str(workers), "--ps", "1", "--epochs", "0", "--steps-per-epoch", "1000000",
                   "--log-every", "20", "--quiet", "--run-dir", run_dir, *end, *options]
        try:
            start = time.perf_counter()
            done = subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=seconds + GRACE)
            if done.returncode != 0:
                raise environment.SetupError(f"{' '.join(command[1:])}: {environment.last_line(done.stderr)}")
            return {**figures(run_dir, workers if "--sync" in options else 1), "wall_s": time.perf_counter() - start}
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def figures(run_dir, gradients_per_step):
    with open(f"{run_dir}/summary.json") as file:
        summary = json.load(file)
    with open(f"{run_dir}/steps.csv") as file:
        lines = [(int(row["step"]), float(row["seconds"])) for row in csv.DictReader(file)]
    skipped = lines[0][1] + WARM_UP_SHARE * (lines[-1][1] - lines[0][1])
    steady = [line for line in lines if line[1] >= skipped]
    if len(steady) < 2:
        raise environment.SetupError(f"{run_dir}: too few steps to take a rate from")
    rate = (steady[-1][0] - steady[0][0]) / (steady[-1][1] - steady[0][1])
    throttled = None
    if os.path.exists(f"{run_dir}/throttling.json"):
        with open(f"{run_dir}/throttling.json") as file:
            throttled = json.load(file)
    waits = [worker["wait_share"] for worker in summary["workers"]]
    return {"steps": summary["steps"], "steps_per_s": rate, "threads": summary["threads"],
            "examples_per_s": rate * gradients_per_step * summary["batch"],
            "wait_share": sum(waits) / len(waits), "accuracy": summary["test_accuracy"],
            "staleness": [worker["staleness_mean"] for worker in summary["workers"]],
            "stop_reason": summary["stop_reason"], "throttling": throttled}


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class TensorFlow:
    """A ps and workers of peers/tensorflow_ps.py, each a process."""

    def __init__(self, python, peers, data):
        self.command = [str(python), str(peers / "tensorflow_ps.py"), "--data", str(data)]
        self.environ = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3",
                        "PYTHONDONTWRITEBYTECODE": "1"}

    def train(self, model, steps, workers, limit, *options):
        """Returns the workers' output, None for one still running after `limit` seconds. The ps never ends."""
        ports = [f"127.0.0.1:{port}" for port in free_ports(1 + workers)]
        common = ["--ps", ports[0], "--workers", ",".join(ports[1:]), "--model", model, "--batch", str(BATCH[model]),
                  "--steps", str(steps), *options]
        roles = ["ps:0", *(f"worker:{i}" for i in range(workers))]
        processes = [subprocess.Popen([*self.command, "--role", role, *common], env=self.environ, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
                     for role in roles]
        start = time.monotonic()
        try:
            return [self.result(process, start, limit) for process in processes[1:]]
        finally:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()

    @staticmethod
    def result(process, start, limit):
        try:
            out, err = process.communicate(timeout=max(0.1, start + limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None
        if process.returncode != 0:
            return {"error": environment.last_line(err, prefer="Error")}
        return {**json.loads(environment.last_line(out)), "ended_after_s": time.monotonic() - start}
