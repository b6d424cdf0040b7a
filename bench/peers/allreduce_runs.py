"""Trainings by all-reduce on ranks of this machine, ours and the peers', and figures from their output."""

import contextlib
import csv
import dataclasses
import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

import cluster_runs
import contest
import environment

RANKS = 2
WARM_UP_SHARE = 0.2  # share of a run's lines in steps.csv


@dataclasses.dataclass(frozen=True)
class Work:
    """A training on two ranks of one thread each."""

    model: str
    batch: int  # per rank
    optimizer: str
    rate: float
    chunk: int  # steps timed together, some 20 ms of ours
    peer_ms: float  # approximate time of a step; sets the length of their runs
    target: float
    options: tuple = ()  # flags of ours
    steps: int = 0  # if set, ours ends after this many steps, not by time

    def chunks(self, seconds):
        return 3 if self.steps else max(10, round(1e3 * seconds / self.peer_ms / self.peer_chunk))

    @property
    def peer_chunk(self):
        return 1 if self.steps else max(1, round(20 / self.peer_ms))


WORK = {
    "lr": Work("lr", 100, "sgd", 0.01, 100, 2.0, 10.0),
    "lenet": Work("lenet", 64, "adam", 0.001, 10, 10.0, 2.3),
    # Images are made at the start; few of them are evaluated at the end.
    "alexnet": Work("alexnet", 32, "sgd", 0.01, 1, 1700.0, 1.35, steps=6, options=(
        "--dataset", "images", "--generate", "once", "--train-size", "256", "--test-size", "8", "--eval-batch", "8")),
}


class RunFailed(Exception):
    """The reason for a missing figure."""


class Ours:
    """`lockstep train` with each engine."""

    ENGINES = ("in-process", "Gloo", "MPI")

    def __init__(self, program, data):
        self.program = str(program)
        self.environ = {**os.environ, "LOCKSTEP_DATA": str(data), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def measure(self, engine, work, seconds, *options):
        end = ("--steps", str(work.steps)) if work.steps else ("--seconds", str(seconds))
        settings = ("--batch", str(work.batch), "--lr", str(work.rate), "--epochs", "0", "--steps-per-epoch", "1000000",
                    "--log-every", str(work.chunk), *end, *work.options, *options)
        with self.trained(engine, work.model, *settings) as (run_dir, foreign):
            return {**paces(run_dir, work), "foreign_cores": foreign, "communication": summary(run_dir)["communication"]}

    @contextlib.contextmanager
    def trained(self, engine, model, *settings):
        """Returns the folder of the run, and the number of cores that other processes used during it."""
        ranks = {"in-process": ("--replicas", str(RANKS)), "Gloo": ("--workers", str(RANKS), "--strategy", "allreduce"),
                 "MPI": ()}[engine]
        launcher = ("mpirun", "-n", str(RANKS), "--oversubscribe") if engine == "MPI" else ()
        folder = tempfile.mkdtemp(prefix="lockstep-bench-")
        command = [*launcher, self.program, "train", model, "--threads", "1", "--quiet", "--run-dir", f"{folder}/run",
                   *ranks, *settings]
        try:
            yield f"{folder}/run", run(command, self.environ)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def run(command, environ, limit=300):
    """Returns the number of cores that other processes used during the runs."""
    watch = Foreign()
    try:
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise RunFailed(f"no end after {limit} s") from None
    except OSError as error:
        raise RunFailed(str(error)) from None
    if done.returncode != 0:
        raise RunFailed(environment.last_line(done.stderr + done.stdout, prefer="rror"))
    return watch.cores()


class Foreign:
    """The CPU time that other processes of this machine use."""

    def __init__(self):
        self.start = time.monotonic(), contest.busy_seconds(), contest.children_seconds()

    def cores(self):
        wall, busy, own = (now - then for now, then in zip(
            (time.monotonic(), contest.busy_seconds(), contest.children_seconds()), self.start))
        return max(0.0, (busy - own) / wall)


def summary(run_dir):
    with open(f"{run_dir}/summary.json") as file:
        return json.load(file)


def paces(run_dir, work):
    with open(f"{run_dir}/steps.csv") as file:
        times = [1e3 * float(row["seconds_per_step"]) for row in csv.DictReader(file)]
    steady = times[max(2, round(WARM_UP_SHARE * len(times))):]
    if len(steady) < 3:
        raise RunFailed("too few steps to take a rate from")
    return pace(steady, work)


def pace(times, work):
    """A run's figure is its median chunk."""
    middle = statistics.median(times)
    return {"ms_per_step": middle, "best_ms": min(times), "mean_ms": statistics.fmean(times), "chunks": len(times),
            "examples_per_s": 1e3 * RANKS * work.batch / middle}


class Peer:
    """Ranks of a Python peer, each a process."""

    def __init__(self, python, script, *options):
        self.command = [str(python), str(script), *options]
        self.environ = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
                        "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONDONTWRITEBYTECODE": "1"}

    def measure(self, work, seconds, limit=240):
        addresses = ",".join(f"127.0.0.1:{port}" for port in cluster_runs.free_ports(RANKS))
        command = [*self.command, "--addresses", addresses, "--model", work.model, "--batch", str(work.batch),
                   "--optimizer", work.optimizer, "--warm-up", str(2 if work.steps else 5 * work.peer_chunk + 20),
                   "--chunk", str(work.peer_chunk), "--chunks", str(work.chunks(seconds))]
        watch = Foreign()
        processes = [subprocess.Popen([*command, "--rank", str(rank)], env=self.environ, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
                     for rank in range(RANKS)]
        try:
            said = self.said(processes, limit)
        finally:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        if said["loss_last"] > 1.2 * said["loss_first"]:
            raise RunFailed(f"the loss grew from {said['loss_first']:.4g} to {said['loss_last']:.4g}")
        return {**said, **pace(said.pop("ms"), work), "foreign_cores": watch.cores()}

    @staticmethod
    def said(processes, limit):
        end = time.monotonic() + limit
        outputs = []
        for process in processes:
            try:
                out, err = process.communicate(timeout=max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise RunFailed(f"no end after {limit} s") from None
            if process.returncode != 0:
                raise RunFailed(environment.last_line(err, prefer="Error"))
            outputs.append(out)
        return json.loads(environment.last_line(outputs[0]))
