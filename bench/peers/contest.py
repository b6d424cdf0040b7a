"""The contestants, and the rounds in which they are measured."""

import dataclasses
import json
import os
import resource
import subprocess
import time

import environment

FOREIGN_CORES = 0.15  # above this, other processes have disturbed a run
HOPELESS = 1.3  # a peer this much slower than the fastest one in the first round is not run again
LOSS_TOLERANCE = 0.2  # relative difference of first losses: same distribution of parameters, other draws


@dataclasses.dataclass(frozen=True)
class Effort:
    rounds: int
    seconds: float  # seconds measured in each run
    attempts: int  # runs in a round, if others disturb them
    quiet_wait: float  # seconds to wait for others before a run


FULL = Effort(rounds=3, seconds=2.0, attempts=3, quiet_wait=30)
QUICK = Effort(rounds=1, seconds=0.5, attempts=1, quiet_wait=5)


@dataclasses.dataclass(frozen=True)
class Contestant:
    """Contestants of one column are variants of one peer; the faster one counts."""

    name: str
    column: str
    command: list
    unavailable: str | None = None
    models: tuple | None = None  # None: all
    precisions: tuple = ("f32",)
    same_numbers: bool = True  # false: the same amount of work, other results

    def takes(self, workload):
        return (self.models is None or workload.model in self.models) and workload.precision in self.precisions


def ours(root):
    program = root / "build/release/bench/step_time"
    missing = None if program.exists() else (
        f"{program.relative_to(root)} is not built: cmake --preset release -DLOCKSTEP_BENCH=ON"
        " && cmake --build build/release --target step_time")
    return Contestant("ours", "ours", [str(program)], missing, precisions=("f32", "bf16"))


def contestants(root, peers, python, libtorch):
    program = [str(libtorch.program)] if libtorch.program else []

    def script(name, *options):
        return [str(python), str(peers / name), *options]

    def torch(name, column, *options, **more):
        return Contestant(name, column, script("torch_peer.py", *options), **more)

    both = ("f32", "bf16")
    plain = {"models": ("alexnet",), "precisions": both}
    grid = {"models": ("stn",), "same_numbers": False}
    compiled = ("--variant", "compile")
    return [
        ours(root),
        torch("eager", "PyTorch", precisions=both),
        torch("eager, plain layout", "PyTorch", "--layout", "plain", **plain),
        torch("eager, grid_sample", "PyTorch", "--sampler", "grid", **grid),
        torch("compile", "torch.compile", *compiled, precisions=both),
        torch("compile, plain layout", "torch.compile", *compiled, "--layout", "plain", **plain),
        torch("compile, grid_sample", "torch.compile", *compiled, "--sampler", "grid", **grid),
        Contestant("libtorch", "libtorch", program, libtorch.error, models=("lr", "lenet")),
        Contestant("tf.function", "TensorFlow", script("tensorflow_peer.py")),
        Contestant("tf.function XLA", "TensorFlow", script("tensorflow_peer.py", "--variant", "xla")),
        Contestant("jit", "JAX", script("jax_peer.py")),
    ]


class Record:
    """The runs of one contestant on one workload."""

    def __init__(self, contestant):
        self.contestant = contestant
        self.runs = []
        self.error = contestant.unavailable

    @property
    def best(self):
        """Returns the fastest run, None if the contestant failed."""
        return None if self.error else min(self.runs, key=lambda run: run["ms_per_step"], default=None)


class RunFailed(Exception):
    """The reason for a contestant's missing figure."""


def skip_reason(workload, contestant, environ, threads):
    """Tries a tiny model; returns the reason that ours cannot run in this precision here, None if it can."""
    if workload.precision == "f32" or contestant.unavailable:
        return None
    arguments = ["--model", "lr", "--batch", "1", "--optimizer", "sgd", "--threads", str(threads),
                 "--seconds", "0", "--may-rise", "--precision", workload.precision]
    try:
        run_once(contestant.command + arguments, environ, threads, limit=60)
    except RunFailed as error:
        return str(error).removeprefix("exit status 1: ")
    return None


def run(workloads, contestants, effort, threads, data, environ):
    """Returns (workload, records, reason it was skipped) of each. Later rounds leave out failed contestants."""
    results = []
    for workload in workloads:
        skipped = skip_reason(workload, contestants[0], environ, threads)
        if skipped:
            environment.progress(f"{workload.name}: skipped: {skipped}")
        records = [Record(contestant) for contestant in contestants if contestant.takes(workload)]
        if not skipped:
            run_rounds(workload, records, effort, threads, data, environ)
            compare_starts(workload, records)
        results.append((workload, records, skipped))
    return results


def run_rounds(workload, records, effort, threads, data, environ):
    arguments = workload.arguments(threads, effort.seconds, data)
    for number in range(1, effort.rounds + 1):
        for record in worth_running(records):
            label = f"{workload.name} round {number}/{effort.rounds} {record.contestant.name}"
            run_round(record, label, arguments, environ, threads, effort, workload.limit)


def worth_running(records):
    """Returns ours, and every peer that may still become the fastest."""
    bests = [record.best["ms_per_step"] for record in records[1:] if record.best]
    limit = HOPELESS * min(bests, default=float("inf"))
    return [record for record in records if not record.error and
            (record is records[0] or not record.best or record.best["disturbed"]
             or record.best["ms_per_step"] <= limit)]


def compare_starts(workload, records):
    """Fails a peer with other parameters or another first loss, since it computes something else."""
    own = records[0].best
    if not own:
        return
    for record in records[1:]:
        theirs = record.best
        if not theirs or "parameters" not in theirs:
            continue
        loss, expected = theirs["loss_first"], own["loss_first"]
        if theirs["parameters"] != own["parameters"]:
            record.error = f"it has {theirs['parameters']} parameters, ours {own['parameters']}"
        elif not workload.epoch and abs(loss - expected) > LOSS_TOLERANCE * abs(expected):
            record.error = f"its first loss is {loss:.4g}, ours {expected:.4g}"


def run_round(record, label, arguments, environ, threads, effort, limit):
    """Repeats a run that others disturbed; every figure is kept, as the best one counts."""
    for _ in range(effort.attempts):
        wait_for_quiet(effort.quiet_wait)
        try:
            measured = check_result(run_once(record.contestant.command + arguments, environ, threads, limit),
                                    "--may-rise" in arguments)
        except RunFailed as error:
            record.error = str(error)
            environment.progress(f"{label}: failed: {error}")
            return
        record.runs.append(measured)
        note = f" (others used {measured['foreign_cores']:.2f} cores)" if measured["disturbed"] else ""
        memory = f", {measured['memory_mb']:.0f} MB" if "memory_mb" in measured else ""
        environment.progress(f"{label}: {measured['ms_per_step']:.4g} ms{memory}{note}")
        if not measured["disturbed"]:
            return


def run_once(command, environ, threads, limit):
    cores = sorted(os.sched_getaffinity(0))[:threads]
    before = time.monotonic(), busy_seconds(), children_seconds()
    try:
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=limit,
                              preexec_fn=lambda: os.sched_setaffinity(0, cores))
    except subprocess.TimeoutExpired:
        raise RunFailed(f"no result after {limit} s") from None
    except OSError as error:
        raise RunFailed(str(error)) from None
    if done.returncode != 0:
        raise RunFailed(f"exit status {done.returncode}: {environment.last_line(done.stderr, prefer='rror')}")
    try:
        measured = dict(json.loads(environment.last_line(done.stdout)))
    except (ValueError, TypeError):
        raise RunFailed("its output is not the expected JSON line") from None
    wall, busy, own = (now - then for now, then in
                       zip((time.monotonic(), busy_seconds(), children_seconds()), before))
    foreign = max(0.0, (busy - own) / wall)
    return {**measured, "foreign_cores": foreign, "disturbed": foreign > FOREIGN_CORES}


def check_result(measured, may_rise):
    try:
        valid = measured["ms_per_step"] > 0 and measured["steps"] > 0
    except (KeyError, TypeError):
        raise RunFailed("its output is not the expected JSON line") from None
    if not valid:
        raise RunFailed("it measured nothing")
    first, last = measured.get("loss_first", 1), measured.get("loss_last", 0)
    if not (last < first or may_rise and last < (1 + LOSS_TOLERANCE) * first):
        raise RunFailed(f"the loss did not fall ({first} to {last})")
    return measured


def busy_seconds():
    """Returns the time that all cores together have worked since the machine started."""
    with open("/proc/stat") as file:
        user, nice, system, _idle, _wait, irq, soft = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_for_quiet(seconds):
    """Waits some time for other processes to finish before a run."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start, busy = time.monotonic(), busy_seconds()
        time.sleep(0.25)
        if (busy_seconds() - busy) / (time.monotonic() - start) <= FOREIGN_CORES:
            return
