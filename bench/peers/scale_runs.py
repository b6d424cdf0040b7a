"""Trainings of lr with many workers on this machine, and what their processes use."""

import math
import os
import resource
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import environment

LOOK_EVERY = 0.2  # seconds between looks at the processes
ENOUGH_FILES = 65536
MEGABYTES_OF_WORKER = 80  # with MNIST


def train_if_fits(args, strategy, workers):
    """One training, if there is memory for it: each worker holds the data."""
    free = next(int(line.split()[1]) / 1024 for line in open("/proc/meminfo") if line.startswith("MemAvailable"))
    if workers * MEGABYTES_OF_WORKER > free:
        return {"strategy": strategy, "workers": workers,
                "failed": f"needs {workers * MEGABYTES_OF_WORKER / 1024:.0f} GB of memory, {free / 1024:.0f} GB are free"}
    return train(args, strategy, workers)


def train(args, strategy, workers):
    """One training. Returns its figures, or the reason for its failure."""
    folder = tempfile.mkdtemp(prefix="lockstep-bench-")
    run_dir = Path(folder) / "run"
    command = [str(args.program), "train", "lr", "--workers", str(workers), "--threads", "1", "--steps", str(args.steps),
               "--quiet", "--run-dir", str(run_dir)]
    command += ["--strategy", "allreduce"] if strategy == "allreduce" else ["--ps", "1", "--sync"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    watch = Watch(run_dir, start)
    try:
        process = subprocess.Popen(command, env={**os.environ, "LOCKSTEP_DATA": str(args.data)}, text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=raise_limits)
        said = watch.run(process, args.limit)
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    figures = {"strategy": strategy, "workers": workers, "wall_s": wall, "threads": watch.threads,
               "descriptors": watch.descriptors, "server_threads": watch.server_threads}
    if process.returncode != 0 or watch.first_step is None:
        late = wall >= args.limit
        return {**figures, "failed": f"no end in {args.limit:.0f} s" if late else environment.last_line(said)}
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**figures, "first_step_s": watch.first_step, "cpu_s_per_worker": seconds / workers}


def growth(before, after):
    """The factor of processor time per worker for each doubling between two runs; None: it is not known."""
    if not before or "failed" in before or "failed" in after or before["workers"] >= after["workers"]:
        return None
    doublings = math.log2(after["workers"] / before["workers"])
    return (after["cpu_s_per_worker"] / before["cpu_s_per_worker"]) ** (1 / doublings)


def raise_limits():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = ENOUGH_FILES if most == resource.RLIM_INFINITY else min(most, ENOUGH_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


class Watch:
    """Looks at the launcher's children while they run: the most threads and descriptors that any of them has held."""

    def __init__(self, run_dir, start):
        self.steps = run_dir / "steps.csv"
        self.start = start
        self.first_step = None
        self.threads = self.descriptors = self.server_threads = 0

    def run(self, process, limit):
        """Returns what the launcher said as errors."""
        said = []
        reader = threading.Thread(target=lambda: said.append(process.stderr.read()), daemon=True)
        reader.start()
        while process.poll() is None:
            if time.perf_counter() - self.start > limit:
                process.terminate()  # it ends its roles
                process.wait(60)
                break
            self.look(process.pid)
            time.sleep(LOOK_EVERY)
        self.look_for_step()
        reader.join(10)
        return "".join(said)

    def look(self, launcher):
        self.look_for_step()
        try:
            children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
        except OSError:
            return
        for child in children:
            try:
                serves = b"--task=ps:" in Path(f"/proc/{child}/cmdline").read_bytes()
                threads = len(os.listdir(f"/proc/{child}/task"))
                descriptors = len(os.listdir(f"/proc/{child}/fd"))
            except OSError:
                continue
            if serves:
                self.server_threads = max(self.server_threads, threads)
            else:
                self.threads = max(self.threads, threads)
                self.descriptors = max(self.descriptors, descriptors)

    def look_for_step(self):
        """A step has been made when the run's table of steps has a line below its header."""
        if self.first_step is not None or not self.steps.exists():
            return
        if self.steps.read_bytes().count(b"\n") > 1:
            self.first_step = time.perf_counter() - self.start
