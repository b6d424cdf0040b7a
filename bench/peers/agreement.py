"""Checks that the contestants compute the same: same batch and parameters, no dropout, the losses of three steps."""

import contest
import environment

TOLERANCE = {"f32": 2e-3, "bf16": 5e-2}
LIMIT_SECONDS = 300


def check(workloads, contestants, threads, environ, folder):
    """Prints a line for each contestant on each model; returns whether all agree with ours."""
    folder.mkdir(parents=True, exist_ok=True)
    checked = set()
    agree = True
    for workload in workloads:
        what = tuple(workload.what(workload.check_batch, threads))
        if what in checked:
            continue
        checked.add(what)
        skipped = contest.skip_reason(workload, contestants[0], environ, threads)
        if skipped:
            print(f"{workload.name}: skipped: {skipped}", flush=True)
            continue
        file = folder / "check.bin"
        try:
            agree &= check_workload(workload, contestants, threads, environ, file)
        finally:
            file.unlink(missing_ok=True)
    return agree


def check_workload(workload, contestants, threads, environ, file):
    label = workload.model + ("" if workload.precision == "f32" else f" {workload.precision}")
    own = None
    agree = True
    # libtorch has no way to start from given parameters.
    for contestant in (c for c in contestants if c.takes(workload) and c.column != "libtorch"):
        arguments = contestant.command + workload.check_arguments(threads, file)
        try:
            if contestant.unavailable:
                raise contest.RunFailed(contestant.unavailable)
            found = contest.run_once(arguments, environ, threads, LIMIT_SECONDS)
            own = own or found
            verdict = judge(found, own, TOLERANCE[workload.precision], contestant.same_numbers)
        except contest.RunFailed as error:
            verdict = f"failed: {error}"
        agree &= verdict.startswith("agrees") or not contestant.same_numbers
        print(f"{label}: {contestant.name}: {verdict}", flush=True)
        if own is None:
            return False
    return agree


def judge(found, own, tolerance, same_numbers):
    if found["parameters"] != own["parameters"]:
        return f"has {found['parameters']} parameters, ours {own['parameters']}"
    apart = max(abs(a - b) / abs(b) for a, b in zip(found["losses"], own["losses"], strict=True))
    losses = " ".join(f"{loss:.6g}" for loss in found["losses"])
    details = f"{found['parameters']} parameters, losses {losses}, at most {apart:.1e} from ours"
    if not same_numbers:
        return f"another sampler by intent: {details}"
    return f"{'agrees' if apart <= tolerance else 'DIFFERS'}: {details}"
