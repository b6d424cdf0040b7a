"""The workloads, the contestants, and the rounds in which they are measured."""

import dataclasses
import json
import os
import resource
import subprocess
import time

import environment

FOREIGN_CORES = 0.15  # above this, other processes have disturbed a run
TIMEOUT_SECONDS = 600


@dataclasses.dataclass(frozen=True)
class Effort:
    rounds: int
    seconds: float  # measured in each run
    attempts: int  # runs in a round, if others disturb them
    quiet_wait: float  # seconds to wait for others before a run


FULL = Effort(rounds=3, seconds=2.0, attempts=3, quiet_wait=30)
QUICK = Effort(rounds=1, seconds=0.5, attempts=1, quiet_wait=5)


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    model: str
    batch: int
    optimizer: str
    target: float | None
    epoch: bool = False

    def arguments(self, threads, seconds, data):
        arguments = ["--model", self.model, "--batch", str(self.batch), "--optimizer", self.optimizer,
                     "--threads", str(threads), "--seconds", str(seconds)]
        return arguments + (["--epoch", "--data", str(data)] if self.epoch else [])


WORKLOADS = [
    Workload("lr-1", "lr", 1, "sgd", 3.0),
    Workload("lr-100", "lr", 100, "sgd", 3.5),
    Workload("lr-512", "lr", 512, "sgd", 2.5),
    Workload("lenet-8", "lenet", 8, "adam", 4.0),
    Workload("lenet-64", "lenet", 64, "adam", 2.2),
    Workload("lenet-512", "lenet", 512, "adam", 1.7),
    Workload("epoch-lr-100", "lr", 100, "sgd", None, epoch=True),
    Workload("epoch-lenet-64", "lenet", 64, "adam", 3.0, epoch=True),
]


@dataclasses.dataclass(frozen=True)
class Contestant:
    """Contestants of one column are variants of one peer, of which the faster counts."""

    name: str
    column: str
    command: list
    unavailable: str | None = None


def contestants(root, peers, python, libtorch):
    ours = root / "build/release/bench/step_time"
    missing = None if ours.exists() else (
        f"{ours.relative_to(root)} is not built: cmake --preset release -DLOCKSTEP_BENCH=ON"
        " && cmake --build build/release --target step_time")
    program = [str(libtorch.program)] if libtorch.program else []

    def script(name, *options):
        return [str(python), str(peers / name), *options]

    return [
        Contestant("ours", "ours", [str(ours)], missing),
        Contestant("eager", "PyTorch", script("torch_peer.py")),
        Contestant("compile", "torch.compile", script("torch_peer.py", "--variant", "compile")),
        Contestant("libtorch", "libtorch", program, libtorch.error),
        Contestant("tf.function", "TensorFlow", script("tensorflow_peer.py")),
        Contestant("tf.function XLA", "TensorFlow", script("tensorflow_peer.py", "--variant", "xla")),
        Contestant("jit", "JAX", script("jax_peer.py")),
    ]


class Record:
    """What one contestant did on one workload."""

    def __init__(self, contestant):
        self.contestant = contestant
        self.runs = []
        self.error = contestant.unavailable

    @property
    def best(self):
        """The fastest run, None if the contestant failed."""
        return None if self.error else min(self.runs, key=lambda run: run["ms_per_step"], default=None)


class RunFailed(Exception):
    """Why a contestant gave no figure."""


def run(workloads, contestants, effort, threads, data, cache):
    """Returns (workload, records) pairs; a contestant that fails is left out of later rounds."""
    environ = child_environment(threads, cache)
    results = []
    for workload in workloads:
        records = [Record(contestant) for contestant in contestants]
        arguments = workload.arguments(threads, effort.seconds, data)
        for number in range(1, effort.rounds + 1):
            for record in records:
                if not record.error:
                    label = f"{workload.name} round {number}/{effort.rounds} {record.contestant.name}"
                    run_round(record, label, arguments, environ, threads, effort)
        results.append((workload, records))
    return results


def child_environment(threads, cache):
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads),
            "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONDONTWRITEBYTECODE": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}


def run_round(record, label, arguments, environ, threads, effort):
    """Repeats a run that others disturbed; every figure is kept, as the best one counts."""
    for _ in range(effort.attempts):
        wait_for_quiet(effort.quiet_wait)
        try:
            measured = run_once(record.contestant.command + arguments, environ, threads)
        except RunFailed as error:
            record.error = str(error)
            environment.progress(f"{label}: failed: {error}")
            return
        record.runs.append(measured)
        note = f" (others used {measured['foreign_cores']:.2f} cores)" if measured["disturbed"] else ""
        environment.progress(f"{label}: {measured['ms_per_step']:.4g} ms{note}")
        if not measured["disturbed"]:
            return


def run_once(command, environ, threads):
    cores = sorted(os.sched_getaffinity(0))[:threads]
    before = time.monotonic(), busy_seconds(), children_seconds()
    try:
        done = subprocess.run(command, env=environ, capture_output=True, text=True,
                              timeout=TIMEOUT_SECONDS,
                              preexec_fn=lambda: os.sched_setaffinity(0, cores))
    except subprocess.TimeoutExpired:
        raise RunFailed(f"no result after {TIMEOUT_SECONDS} s") from None
    except OSError as error:
        raise RunFailed(str(error)) from None
    if done.returncode != 0:
        raise RunFailed(f"exit status {done.returncode}: {environment.last_line(done.stderr, prefer='rror')}")
    measured = parse_result(done.stdout)
    wall, busy, own = (now - then for now, then in
                       zip((time.monotonic(), busy_seconds(), children_seconds()), before))
    foreign = max(0.0, (busy - own) / wall)
    return {**measured, "foreign_cores": foreign, "disturbed": foreign > FOREIGN_CORES}


def parse_result(stdout):
    try:
        measured = json.loads(environment.last_line(stdout))
        valid = measured["ms_per_step"] > 0 and measured["steps"] > 0
    except (ValueError, KeyError, TypeError):
        raise RunFailed("its output is not the expected JSON line") from None
    if not valid:
        raise RunFailed("it measured nothing")
    first, last = measured.get("loss_first", 1), measured.get("loss_last", 0)
    if not last < first:
        raise RunFailed(f"the loss did not fall ({first} to {last})")
    return measured


def busy_seconds():
    """Time that all cores together have spent working since the machine started."""
    with open("/proc/stat") as file:
        user, nice, system, _idle, _wait, irq, soft = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_for_quiet(seconds):
    """Gives other processes some time to finish before a run starts."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start, busy = time.monotonic(), busy_seconds()
        time.sleep(0.25)
        if (busy_seconds() - busy) / (time.monotonic() - start) <= FOREIGN_CORES:
            return
