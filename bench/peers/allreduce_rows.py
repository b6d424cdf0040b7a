"""The measurements of bench/allreduce: each a function of the bench that returns (title, lines, everything measured)."""

import json
import statistics
import subprocess

import allreduce_runs
import contest
import environment

EXACT = "in-process, --exact-conv"
EXACT_TARGET = 1.15
OVERLAP_TARGET = 0.7


def ours(bench, engine, work):
    if engine == EXACT:
        return bench.ours.measure("in-process", work, bench.seconds, "--exact-conv")
    return bench.ours.measure(engine, work, bench.seconds)


def contestants(bench, name):
    """(label, owner, function that measures once); ours come first."""
    work = allreduce_runs.WORK[name]
    engines = list(allreduce_runs.Ours.ENGINES) + ([EXACT] if name == "alexnet" else [])
    found = [(engine, "ours", lambda engine=engine: ours(bench, engine, work)) for engine in engines]
    for label, peer in bench.peers(name):
        found.append((label, "peer", lambda peer=peer: peer.measure(work, bench.seconds)))
    return found


def speed(bench, name):
    """Runs rounds in which everyone runs once, leaving out peers that can no longer become the fastest."""
    runs, errors = {}, {}
    everyone = contestants(bench, name)
    peers = [label for label, whose, _ in everyone if whose == "peer"]
    for number in range(1, bench.rounds + 1):
        limit = contest.HOPELESS * min((fastest(runs[p]) for p in peers if p in runs), default=float("inf"))
        for label, _, measure in everyone:
            if label in errors or label in peers and label in runs and fastest(runs[label]) > limit:
                continue
            contest.wait_for_quiet(bench.quiet_wait)
            try:
                result = measure()
            except allreduce_runs.RunFailed as error:
                errors[label] = str(error)
                bench.say(f"{name} round {number}/{bench.rounds} {label}: failed: {error}")
                continue
            runs.setdefault(label, []).append(result)
            bench.say(f"{name} round {number}/{bench.rounds} {label}: {result['ms_per_step']:.4g} ms"
                      f" (others used {result['foreign_cores']:.2f} cores)")
    work = allreduce_runs.WORK[name]
    title = f"{name}, batch {work.batch} on each of two ranks of one thread"
    return title, speed_lines(work, everyone, runs, errors), {"runs": runs, "errors": errors}


def fastest(runs):
    return min(run["ms_per_step"] for run in runs)


def middle(runs):
    return statistics.median(run["ms_per_step"] for run in runs)


def speed_lines(work, everyone, runs, errors):
    lines = [("", "ms/step", "median round", "examples/s", "over better peer", "of medians", "target", "others' cores")]
    peers = [label for label, whose, _ in everyone if whose == "peer" and label in runs]
    engines = [label for label, whose, _ in everyone if whose == "ours" and label in runs]
    best_peer = min((fastest(runs[p]) for p in peers), default=None)
    middle_peer = min((middle(runs[p]) for p in peers), default=None)
    best_engine = min((e for e in engines if e != EXACT), key=lambda e: fastest(runs[e]), default=None)
    for label, whose, _ in everyone:
        if label in errors:
            lines.append((label, f"failed: {errors[label][:80]}", "", "", "", "", "", ""))
        if label not in runs:
            continue
        best = fastest(runs[label])
        ratios, target = ("", ""), ""
        if whose == "ours" and best_peer:
            ratios = f"{best_peer / best:.2f}", f"{middle_peer / middle(runs[label]):.2f}"
            target = EXACT_TARGET if label == EXACT else work.target if label == best_engine else ""
        disturbed = max(run["foreign_cores"] for run in runs[label])
        lines.append((label, f"{best:.4g}", f"{middle(runs[label]):.4g}",
                      f"{1e3 * allreduce_runs.RANKS * work.batch / best:.0f}", *ratios, target, f"{disturbed:.2f}"))
    return lines


def lr(bench):
    """Softmax regression against the peers."""
    return speed(bench, "lr")


def lenet(bench):
    """LeNet against the peers."""
    return speed(bench, "lenet")


def alexnet(bench):
    """AlexNet against the peers."""
    return speed(bench, "alexnet")


def overlap(bench):
    """The overlapped share of communication."""
    program = bench.build / "bench/overlap_bench"
    lines = [("bucket MB", "step ms", "transfer ms", "exposed ms", "of the last", "link ms", "share", "of link",
              "target")]
    runs = {}
    for _ in range(bench.rounds):
        for bucket in ("25",) if bench.quick else ("5", "25", "100"):
            contest.wait_for_quiet(bench.quiet_wait)
            bench.say(f"overlap, buckets of {bucket} MB")
            command = [str(program), "--json", "--bucket-mb", bucket, "--steps", "4" if bench.quick else "6"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise environment.SetupError(f"overlap_bench: {environment.last_line(done.stderr)}")
            runs.setdefault(bucket, []).append(json.loads(environment.last_line(done.stdout)))
    for bucket, results in runs.items():
        best = max(results, key=lambda run: run["share"])
        times = ("step_ms", "transfer_ms", "exposed_ms", "least_exposed_ms", "link_ms")
        lines.append((bucket, *(f"{best[key]:.1f}" for key in times), f"{best['share']:.1%}",
                      f"{best['share_of_link']:.1%}", f"{OVERLAP_TARGET:.0%}" if bucket == "25" else ""))
    title = "AlexNet, batch 32 on each of two replicas of one thread, an engine throttled to 10 Gbit/s each way"
    return title, lines, runs


COMPRESSIONS = {"f32": (), "bf16": ("--wire", "bf16"), "f16": ("--wire", "f16"), "top-k 0.1": ("--top-k", "0.1"),
                "top-k 0.01": ("--top-k", "0.01")}


def compression(bench):
    """The gain and the cost of compression."""
    lines = [("sent", "kB per step", "of f32", "test accuracy", "test loss", "ms per step")]
    measured = {}
    for name, options in COMPRESSIONS.items():
        bench.say(f"compression: {name}")
        settings = ("--epochs", "1", "--log-every", "20", "--eval-batch", "500", *options)
        with bench.ours.trained("Gloo", "lenet", *settings) as (run_dir, _):
            summary = allreduce_runs.summary(run_dir)
            pace = allreduce_runs.paces(run_dir, allreduce_runs.WORK["lenet"])
        measured[name] = {**summary["communication"], "accuracy": summary["test_accuracy"], **pace}
        sent = summary["communication"]["bytes_per_step"]
        lines.append((name, f"{sent / 1e3:.1f}", f"{sent / measured['f32']['bytes_per_step']:.1%}",
                      f"{summary['test_accuracy']:.2%}", f"{summary['test_loss']:.4f}", f"{pace['ms_per_step']:.3g}"))
    return "LeNet, one epoch on two ranks over Gloo; bytes that a rank sends", lines, measured


ROWS = {row.__name__: row for row in (lr, lenet, alexnet, overlap, compression)}
