#!/usr/bin/env python3
"""Trains a cluster while faults hit it at random moments, and compares it with undisturbed runs.

    tests/failures/chaos.py --strategy sync|async|allreduce|etcd --faults 300 [--seed N]

Faults: kill -9 of one role or several, stops of 1 to 8 s, networks of a node that are cut for 1 to 8 s, and a full disk. With
etcd the roles are started by hand, and etcd itself is hit, too. The same seed makes the same faults.

Ends with 0 if the training ended by itself after all faults, each example was applied once per epoch, nobody and nothing was
left behind, the accuracy is that of the undisturbed runs within their noise, every kill was named within 2 s and silence within
7 s. --lenient wants them named, and only reports the times: those of a busy machine are upper bounds.
"""

import argparse
import collections
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time

from chaos_cluster import ByHand, Disk, Launched, allowed, enter_private_mounts
from chaos_plan import KINDS, NAMED_DEAD, NAMED_SILENT, Line, Naming, measure, plan
from cluster_job import ClusterTest, Job, Run, _read

FASHION = "/usr/share/datasets/fashion-mnist"
EXAMPLES = 6000
CALM_EPOCHS = 2
PACED_EPOCHS = 10
LEAST_NOISE = 0.015  # of an accuracy over 2,000 examples
COMES_BACK = 60  # seconds in which a killed role must be there again


class TooFew(Exception):
    """The training ended before all faults were made."""


def dataset():
    if os.path.isdir(os.path.join(os.environ.get("LOCKSTEP_DATA", ""), "mnist")):
        return "mnist"
    return "fashion-mnist" if os.path.isdir(FASHION) else "synthetic"


def words(options, epochs, seed, more):
    cluster = ["--strategy", "allreduce"]
    if options.strategy in ("sync", "async"):
        cluster = ["--ps", str(options.ps), "--" + options.strategy, "--contributions"]
    return ["train", "lenet", "--dataset", dataset(), "--train-limit", str(EXAMPLES), "--test-limit", "2000", "--threads",
            "1", "--batch", "10", "--epochs", str(epochs), "--seed", str(seed), "--checkpoint-every", "50", "--eval-every",
            "500", "--log-every", "10", *cluster, *more]


def roles_of(options):
    servers = [f"ps:{i}" for i in range(options.ps)] if options.strategy in ("sync", "async") else []
    etcd = ["etcd"] if options.strategy == "etcd" else []
    return [f"worker:{i}" for i in range(options.workers)] + servers + ["evaluator:0"] + etcd


def undisturbed(folder, options, epochs, seed):
    """Returns the summary of a run without faults."""
    name = f"calm-{epochs}-{seed}"
    options_of_a_launcher = ["--workers", str(options.workers), "--name", name]
    job = Job(folder, words(options, epochs, seed, options_of_a_launcher))
    try:
        assert job.finish(900) == 0, job.told()
    finally:
        job.end()
    return Run(os.path.join(folder, "runs", name + "-1")).summary()


def age(pid):
    """Returns the seconds since the process was started; 0 if it is gone."""
    stat = _read(f"/proc/{pid}/stat")
    started = stat[stat.rfind(b")") + 2 :].split()[19:20]
    return time.monotonic() - int(started[0]) / os.sysconf("SC_CLK_TCK") if started else 0


class Chaos:
    """One training with faults."""

    def __init__(self, folder, options, kinds, epochs, faults):
        self.folder = folder
        self.options = options
        self.faults = faults
        self.roles = roles_of(options)
        self.disk = Disk(folder, "fill" in kinds)
        more = ["--workers", str(options.workers), "--evaluator", "--restarts", str(10 * len(faults)), "--name", "chaos",
                "--runs-dir", self.disk.path]
        self.run = Run(os.path.join(self.disk.path, "chaos-1"))
        if options.strategy == "etcd":
            self.run = Run(os.path.join(self.disk.path, "run"))
            more = ["--run-dir", self.run.path]
            self.cluster = ByHand(folder, words(options, epochs, options.seed, more), options.workers, options.rate)
        else:
            self.cluster = Launched(folder, words(options, epochs, options.seed, more), "cut" in kinds and options.rate)
        self.ends = []  # (time, what ends a fault)
        self.began = time.monotonic()

    def wait(self, seconds, until=lambda: False):
        """Lets the cluster run; returns true as soon as the condition holds."""
        deadline = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            self.cluster.tick()
            for due in [end for end in self.ends if end[0] <= now]:
                self.ends.remove(due)
                due[1]()
            if until():
                return True
            if now >= deadline or self.cluster.over():
                return False
            time.sleep(0.01)

    def wait_for_training(self):
        self.wait(120, lambda: self.run.last_step() > 0)
        assert self.run.last_step() > 0, f"no step:\n{self.cluster.logs.told()}"

    def make_all(self):
        for fault in self.faults:
            self.wait(fault.after)
            if not self.make(fault):
                raise TooFew
        self.wait(60, lambda: not self.ends)

    def make(self, fault):
        """Returns false if the training was over before."""
        def there():
            return fault.kind == "fill" or all(self.cluster.pid(role) for role in fault.targets)
        if not self.wait(COMES_BACK, there):
            assert self.cluster.over(), f"{fault.targets} did not come back:\n{self.cluster.logs.told()}"
            return False
        print(f"    {time.monotonic() - self.began:7.2f} s: {fault.text()}", flush=True)
        pids = [self.cluster.pid(role) for role in fault.targets if role != "disk"]
        fault.at = time.monotonic()
        fault.ages = {role: age(pid) for role, pid in zip(fault.targets, pids) if role != "disk"}
        getattr(self, fault.kind)(fault, pids)
        return True

    def until(self, fault, end):
        self.ends.append((fault.at + fault.seconds, end))

    def signal(self, pid, number):
        with contextlib.suppress(ProcessLookupError, TypeError):
            os.kill(pid, number)

    def kill(self, _, pids):
        for pid in pids:
            self.signal(pid, signal.SIGKILL)

    def stop(self, fault, pids):
        self.signal(pids[0], signal.SIGSTOP)
        self.until(fault, lambda: self.signal(pids[0], signal.SIGCONT))

    def cut(self, fault, _):
        links, node = self.cluster.links(), self.cluster.node(fault.targets[0])
        fault.targets += [role for role in self.roles if role not in fault.targets and self.cluster.node(role) == node]
        links.set_up(node, False)
        self.until(fault, lambda: links.set_up(node, True))

    def fill(self, fault, _):
        self.disk.fill()
        told = len(self.cluster.logs.lines)
        # Freed at the first failure: the third one without a newer checkpoint ends a job, as it should.
        self.wait(fault.seconds, lambda: any("No space left" in line.text for line in self.cluster.logs.lines[told:]))
        self.disk.free()

    def finish(self):
        self.cluster.hurry(self.roles)
        self.wait(900, self.cluster.over)
        self.cluster.tick()
        assert self.cluster.over(), f"training does not end:\n{self.cluster.logs.told()}"
        assert self.cluster.code() == 0, f"it ended with {self.cluster.code()}:\n{self.cluster.logs.told()}"

    def expect_nothing_left(self):
        deadline = time.monotonic() + 30
        while (left := self.cluster.left()) and time.monotonic() < deadline:
            time.sleep(0.05)
        left += [os.path.join(parent, name) for place in (self.run.path, os.environ["TMPDIR"])
                 for parent, _, names in os.walk(place) for name in names if ".tmp-" in name or place != self.run.path]
        assert not left, f"left behind: {left}"

    def end(self):
        self.cluster.end()
        self.disk.remove()


def check(chaos, epochs, references):
    if chaos.options.strategy in ("sync", "async"):
        ClusterTest().expect_each_example_once(chaos.run, epochs, EXAMPLES)
    else:
        ClusterTest().expect_whole(chaos.run, epochs, EXAMPLES)
    accuracy = chaos.run.summary()["test_accuracy"]
    calm = [reference["test_accuracy"] for reference in references]
    noise = max(LEAST_NOISE, max(calm) - min(calm))
    print(f"  accuracy {accuracy:.4f}, undisturbed {', '.join(f'{one:.4f}' for one in calm)}", flush=True)
    assert min(calm) - noise <= accuracy <= max(calm) + noise, "the accuracy is not an undisturbed run's"


def check_naming(chaos):
    naming = Naming(chaos.faults, chaos.cluster.logs.lines, chaos.roles, chaos.options.strategy != "etcd")
    launcher, others = naming.deaths()
    problems = []
    for found, limit, what in ((launcher, NAMED_DEAD, "kills, by the launcher"),
                               (others, NAMED_DEAD, "kills, by other roles"), (naming.silences(), NAMED_SILENT, "silence")):
        if found:
            text, late = measure(found, limit, what, chaos.began)
            print("  " + text, flush=True)
            problems += late
    for problem in problems:
        print(f"    late: {problem}", flush=True)
    wrong = [problem for problem in problems if not chaos.options.lenient or problem.endswith("never")]
    assert not wrong, "not all faults were named in time:\n" + "\n".join(wrong)


def shake(folder, options, kinds, epochs):
    """Returns the training with its faults made, once it ended well."""
    faults = plan(random.Random(options.seed), options.faults, roles_of(options), kinds, options.gap)
    chaos = Chaos(folder, options, kinds, epochs, faults)
    try:
        chaos.wait_for_training()
        began = time.monotonic()
        chaos.make_all()
        made = time.monotonic()
        step = chaos.run.last_step()
        chaos.finish()
        print(f"  {len(faults)} faults in {made - began:.0f} s, {step} steps until then; {epochs} epochs", flush=True)
        chaos.expect_nothing_left()
        counts = collections.Counter(f"{fault.kind} {role}" for fault in faults for role in fault.targets)
        print("  " + ", ".join(f"{what}: {count}" for what, count in sorted(counts.items())), flush=True)
        check(chaos, epochs, [undisturbed(folder, options, epochs, options.seed + i) for i in range(options.references)])
        check_naming(chaos)
    finally:
        with open(os.path.join(folder, "lines.txt"), "w", encoding="utf-8") as file:
            made = [Line(fault.at, "chaos", fault.text()) for fault in faults]
            for line in sorted(chaos.cluster.logs.lines + made, key=lambda line: line.at):
                file.write(f"{line.at - chaos.began:9.3f} {line.source}: {line.text}\n")
        with contextlib.suppress(OSError, shutil.Error):  # the small disk is gone after the end
            shutil.copytree(chaos.run.path, os.path.join(folder, "run"))
        chaos.end()


def run(folder, options, kinds):
    epochs = options.epochs
    if not epochs and "cut" in kinds:  # the links of the nodes are slow until all faults are made
        epochs = PACED_EPOCHS
    elif not epochs:  # as many as an undisturbed run makes in about the time of the faults
        short = undisturbed(folder, options, CALM_EPOCHS, options.seed)
        epochs = max(CALM_EPOCHS, int(options.faults * options.gap * CALM_EPOCHS / short["seconds"]))
    for attempt in range(4):
        again = os.path.join(folder, f"attempt-{attempt}")
        os.makedirs(os.path.join(again, "tmp"))
        os.environ["TMPDIR"] = os.path.join(again, "tmp")
        try:
            return shake(again, options, kinds, epochs)
        except TooFew:
            epochs *= 2
            print("  training was over before all faults", flush=True)
    raise AssertionError("the training always ended before all faults")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", choices=["sync", "async", "allreduce", "etcd"], required=True)
    parser.add_argument("--faults", type=int, default=30)
    parser.add_argument("--kinds", default=",".join(KINDS), help="of faults: " + ", ".join(KINDS))
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--ps", type=int, default=2)
    parser.add_argument("--gap", type=float, default=0.9, help="seconds between two faults, on average")
    parser.add_argument("--epochs", type=int, default=0, help="0: as many as the faults need")
    parser.add_argument("--rate", default="20mbit", help="of a node's link until all faults are made")
    parser.add_argument("--references", type=int, default=3, help="undisturbed runs")
    parser.add_argument("--lenient", action="store_true", help="only report when faults were named")
    parser.add_argument("--keep", action="store_true", help="keep the output of a run that ended well, too")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options = parser.parse_args()
    enter_private_mounts()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends everything in order, as Ctrl-C
    kinds = allowed(options.kinds.split(","))
    if options.strategy == "etcd" and not (shutil.which("etcd") and "cut" in kinds):
        print("skipped: etcd-server or network namespaces are missing", flush=True)
        return 77
    print(f"{options.strategy}: --seed {options.seed}, kinds {','.join(kinds)}", flush=True)
    folder = tempfile.mkdtemp(prefix="lockstep-chaos-")
    try:
        run(folder, options, kinds)
    except AssertionError as error:
        print(f"FAILED: {error}\nseed {options.seed}; partial output is in {folder}", file=sys.stderr)
        return 1
    if options.keep:
        print(f"output is in {folder}", flush=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
