#!/usr/bin/env python3
"""Trains a cluster while random roles are killed at random moments, and compares it with an undisturbed run.

    tests/failures/chaos.py --kills 300 [--mode sync|async|both] [--workers N] [--ps N] [--seed N]
    tests/failures/chaos.py --kills 300 --strategy allreduce [--workers N] [--seed N]

Ends with 0 when the training ended well after all kills, each example was applied exactly once per epoch (all-reduce: as
many as that makes), nobody was left behind and the accuracy is the undisturbed run's within --band.
"""

import argparse
import collections
import os
import random
import shutil
import signal
import sys
import tempfile
import time

from cluster_job import ClusterTest, Job, Run, eventually

FASHION = "/usr/share/datasets/fashion-mnist"
EXAMPLES = 6000
CALM_EPOCHS = 4
SEVERAL = 0.2  # share of the kills in all-reduce that hit several at once


def all_reduce_words(options, dataset, name, epochs):
    if os.path.isdir(os.path.join(os.environ.get("LOCKSTEP_DATA", ""), "mnist")):
        dataset = "mnist"
    return ["train", "lenet", "--dataset", dataset, "--train-limit", str(EXAMPLES), "--test-limit", "2000", "--threads",
            "1", "--batch", "20", "--epochs", str(epochs), "--workers", str(options.workers), "--evaluator",
            "--strategy", "allreduce", "--restarts", str(10 * options.kills), "--checkpoint-every", "50", "--name", name]


def words(options, mode, name, epochs):
    dataset = "fashion-mnist" if os.path.isdir(FASHION) else "synthetic"
    if mode == "allreduce":
        return all_reduce_words(options, dataset, name, epochs)
    return ["train", "lr", "--dataset", dataset, "--train-limit", str(EXAMPLES), "--test-limit", "2000", "--threads", "1",
            "--batch", "10", "--lr", "0.01", "--epochs", str(epochs), "--workers", str(options.workers), "--ps",
            str(options.ps), "--evaluator", "--" + mode, "--restarts", str(10 * options.kills), "--contributions",
            "--name", name]


def calm(folder, options, mode, epochs):
    job = Job(folder, words(options, mode, "calm", epochs))
    try:
        assert job.finish(600) == 0, job.told()
    finally:
        job.end()
    run = Run(os.path.join(folder, "runs", "calm-1"))
    shutil.move(run.path, run.path + f"-{epochs}")
    return Run(run.path + f"-{epochs}").summary()


def shake(job, options, chance):
    """Kills until there were enough kills or training has ended; returns the number of kills by role."""
    killed = collections.Counter()
    while killed.total() < options.kills and job.process.poll() is None:
        time.sleep(chance.uniform(0, 2 * options.gap))
        roles = sorted(job.roles().items())
        if not roles or job.process.poll() is not None:
            continue
        several = options.strategy == "allreduce" and chance.random() < SEVERAL
        for role, pid in chance.sample(roles, chance.randint(1, len(roles)) if several else 1):
            try:
                os.kill(pid, signal.SIGKILL)
                killed[role] += 1
            except ProcessLookupError:
                pass
    return killed


def check(run, mode, epochs, reference, options):
    if mode == "allreduce":
        ClusterTest().expect_whole(run, epochs, EXAMPLES)
    else:
        ClusterTest().expect_each_example_once(run, epochs, EXAMPLES)
    accuracy = run.summary()["test_accuracy"]
    print(f"  accuracy {accuracy:.4f}, undisturbed {reference['test_accuracy']:.4f}", flush=True)
    assert abs(accuracy - reference["test_accuracy"]) <= options.band, "the accuracy is not an undisturbed run's"


def one_mode(folder, options, mode):
    # Chooses the epochs so that the undisturbed run takes about as long as the kills.
    short = calm(folder, options, mode, CALM_EPOCHS)
    epochs = max(CALM_EPOCHS, int(options.kills * options.gap * CALM_EPOCHS / short["seconds"]))
    reference = calm(folder, options, mode, epochs)
    for attempt in range(4):
        name = f"shaken-{attempt}"
        job = Job(folder, words(options, mode, name, epochs))
        try:
            killed = shake(job, options, random.Random(options.seed + attempt))
            code = job.finish(300 + options.kills * 10)
            assert code == 0, job.told()
            eventually(lambda: not job.everyone(), f"nobody left of {job.roles()}")
        finally:
            job.end()
        print(f"{mode}, {epochs} epochs: {killed.total()} kills: {dict(sorted(killed.items()))}", flush=True)
        check(Run(os.path.join(folder, "runs", name + "-1")), mode, epochs, reference, options)
        if killed.total() >= options.kills:
            return
        epochs *= 2  # training was faster than the kills
        reference = calm(folder, options, mode, epochs)
    raise AssertionError("the training always ended before all kills")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--mode", choices=["sync", "async", "both"], default="both")
    parser.add_argument("--strategy", choices=["ps", "allreduce"], default="ps")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--ps", type=int, default=2)
    parser.add_argument("--gap", type=float, default=0.4, help="seconds between two kills, on average")
    parser.add_argument("--band", type=float, default=0.04)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    modes = ("sync", "async") if options.mode == "both" else (options.mode,)
    for mode in ("allreduce",) if options.strategy == "allreduce" else modes:
        folder = tempfile.mkdtemp(prefix="lockstep-chaos-")
        try:
            one_mode(folder, options, mode)
        except AssertionError as error:
            print(f"FAILED: {mode}: {error}\npartial output is in {folder}", file=sys.stderr)
            return 1
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
