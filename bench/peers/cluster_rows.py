"""The measurements of bench/cluster: each a function of the bench that returns (title, lines, everything measured)."""

import json
import subprocess

import environment

TARGETS = {"lr": 8.0, "lenet": 3.0}
SCALING_TARGETS = {"sync": 2.4, "async": 2.6}
TF_STEPS_PER_S = {"lr": 450, "lenet": 120}  # approximate; sets the length of its runs


def best(results, key):
    return max(results, key=lambda result: result[key])


def tensorflow(bench):
    """One asynchronous worker and one ps: global steps per second."""
    measured = {}
    for round_number in range(bench.rounds):
        for model in ("lr", "lenet"):
            for threads in (0, 1):
                for feed in ("dict", "dataset"):
                    steps = 100 + int(TF_STEPS_PER_S[model] * bench.seconds)
                    bench.say(f"TensorFlow {model}, {feed}, threads {threads or 'default'}, round {round_number + 1}")
                    result = bench.tensorflow.train(model, steps, 1, 60 + 4 * bench.seconds, "--own-count", "--feed",
                                                    feed, "--threads", str(threads))[0]
                    if result and "error" not in result:
                        measured.setdefault((model, threads, "TensorFlow"), []).append({**result, "feed": feed})
                bench.say(f"ours {model}, threads {threads or 'default'}, round {round_number + 1}")
                result = bench.ours.train(model, bench.seconds, 1, "--async", "--threads", str(threads))
                measured.setdefault((model, threads, "ours"), []).append(result)
    lines = [("model", "threads per role", "TensorFlow", "ours", "ratio", "target")]
    for model in ("lr", "lenet"):
        fastest = {"TensorFlow": 0.0, "ours": 0.0}
        for threads in (0, 1):
            theirs = [r["global_steps_per_s"] for r in measured.get((model, threads, "TensorFlow"), [])] or [0]
            ours = best(measured[(model, threads, "ours")], "steps_per_s")
            rates = {"TensorFlow": max(theirs), "ours": ours["steps_per_s"]}
            fastest = {who: max(fastest[who], rate) for who, rate in rates.items()}
            lines.append((model, threads or "default", *line(rates), ""))
        lines.append((model, "each side's best", *line(fastest), TARGETS[model]))
    return "global steps/s, one asynchronous worker and one ps", lines, keyed(measured)


def line(rates):
    ratio = rates["ours"] / rates["TensorFlow"] if rates["TensorFlow"] else float("nan")
    return f"{rates['TensorFlow']:.0f}", f"{rates['ours']:.0f}", f"{ratio:.1f}"


def keyed(measured):
    return {" ".join(map(str, key)): value for key, value in measured.items()}


def ends(bench):
    """Shows which runs end by themselves."""
    lines = [("run", "TensorFlow", "ours")]
    measured = {}
    limit = 45 if bench.quick else 240  # its session waits 120 s for threads that do not end
    for model in ("lr", "lenet"):
        steps = int(TF_STEPS_PER_S[model] * (3 if bench.quick else 10))
        for workers in (1, 2):
            for mode in ("async", "sync"):
                name = f"{model} {mode} {workers} worker{'s' if workers > 1 else ''}"
                bench.say(f"does it end: {name}")
                options = ["--sync"] if mode == "sync" else []
                theirs = bench.tensorflow.train(model, steps, workers, limit, *options)
                ours = bench.ours.train(model, limit, workers, f"--{mode}", steps=steps)
                measured[name] = {"tensorflow": theirs, "ours": ours}
                lines.append((name, ending(theirs, limit), f"{ours['steps']} steps, ended after {ours['wall_s']:.0f} s"))
    title = f"which runs of some {3 if bench.quick else 10} s end by themselves (workers; TensorFlow's ps never does)"
    return title, lines, measured


def ending(results, limit):
    if any(result is None for result in results):
        which = ", ".join(f"worker:{i}" for i, result in enumerate(results) if result is None)
        return f"{which} not ended after {limit} s"
    errors = [result["error"] for result in results if "error" in result]
    if errors:
        return f"failed: {errors[0][:60]}"
    late = max(result["ended_after_s"] for result in results)
    return f"{max(result['global_steps'] for result in results)} steps, ended after {late:.0f} s"


def exchange(bench):
    """Exchange time over a bare socket's, with the real server."""
    program = bench.build / "bench/ps_exchange_bench"
    rows = {}
    for _ in range(bench.rounds):
        bench.say("exchange")
        done = subprocess.run([str(program), "--json", "--rounds", "4" if bench.quick else "15"], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise environment.SetupError(f"ps_exchange_bench: {environment.last_line(done.stderr)}")
        for row in json.loads(done.stdout):
            rows.setdefault(row["model"], []).append(row)
    lines = [("model", "MB", "bare ms", "exchange ms", "optimizer ms", "ratio", "of medians", "of CPU time", "target",
              "copied per update, bytes / gradient's")]
    for model, runs in rows.items():
        least = {key: min(run[key] for run in runs) for key in
                 ("bare_best_ms", "exchange_best_ms", "optimizer_best_ms", "ratio_median", "cpu_ratio")}
        ratio = (least["exchange_best_ms"] - least["optimizer_best_ms"]) / least["bare_best_ms"]
        lines.append((model, f"{runs[0]['bytes'] / 1e6:.2f}", f"{least['bare_best_ms']:.3f}",
                      f"{least['exchange_best_ms']:.3f}", f"{least['optimizer_best_ms']:.3f}", f"{ratio:.2f}",
                      f"{least['ratio_median']:.2f}", f"{least['cpu_ratio']:.2f}", runs[0]["target"],
                      f"{runs[0]['server_copied_bytes']:.0f} / {runs[0]['server_copied_bytes'] / runs[0]['bytes']:.2f}"))
    return "exchange over a bare socket's ping-pong of the same bytes, blocking waits, optimizer apart", lines, rows


def waiting(bench):
    """Share of a step spent in the exchange."""
    lines = [("model", "mode", "1 worker", "2 workers", "3 workers")]
    measured = {}
    for model in ("lr", "lenet"):
        for mode in ("sync", "async"):
            shares = []
            for workers in (1, 2, 3):
                bench.say(f"waiting: {model} {mode} {workers}")
                runs = [bench.ours.train(model, bench.seconds, workers, f"--{mode}", "--threads", "1")
                        for _ in range(bench.rounds)]
                measured[f"{model} {mode} {workers}"] = runs
                shares.append(f"{min(run['wait_share'] for run in runs):.1%}")
            lines.append((model, mode, *shares))
    return "share of a step spent waiting for the exchange (one thread per role)", lines, measured


def updates(bench):
    """Updates per second of one ps."""
    lines = [("workers", "updates/s", "staleness")]
    measured = {}
    for workers in range(1, 9):
        bench.say(f"updates: {workers} workers")
        runs = [bench.ours.train("lr", bench.seconds, workers, "--async", "--threads", "1") for _ in range(bench.rounds)]
        measured[str(workers)] = runs
        top = best(runs, "steps_per_s")
        lines.append((workers, f"{top['steps_per_s']:.0f}", f"{sum(top['staleness']) / workers:.2f}"))
    return "updates/s of one ps: lr, asynchronous, one thread per role", lines, measured


def scaling(bench):
    """Each role at a quarter of a core."""
    quota = ("--cpu-quota", "0.25", "--threads", "1")
    seconds = max(8.0, 2 * bench.seconds)
    measured = {}
    cases = [("1 worker", 1, "sync"), ("1 worker", 1, "async"), ("3 workers", 3, "sync"), ("3 workers", 3, "async")]
    for _ in range(bench.rounds):
        for name, workers, mode in cases:
            bench.say(f"scaling: {name} {mode}")
            result = bench.ours.train("lenet", seconds, workers, f"--{mode}", *quota)
            measured.setdefault(f"{name} {mode}", []).append(result)
    lines = [("mode", "1 worker, examples/s", "3 workers, examples/s", "ratio", "target", "ps throttled")]
    # A single worker does the same in both modes: its best run is the hardest to beat.
    one = best(measured["1 worker sync"] + measured["1 worker async"], "examples_per_s")
    for mode in ("sync", "async"):
        three = best(measured[f"3 workers {mode}"], "examples_per_s")
        lines.append((mode, f"{one['examples_per_s']:.0f}", f"{three['examples_per_s']:.0f}",
                      f"{three['examples_per_s'] / one['examples_per_s']:.2f}", SCALING_TARGETS[mode],
                      throttled_share(three, "ps:0")))
    return "lenet with each role at a quarter of a core", lines, measured


def throttled_share(result, role):
    found = (result["throttling"] or {}).get("roles", result["throttling"] or {}).get(role)
    return f"{found['throttled_periods'] / max(found['periods'], 1):.0%} of periods" if found else "?"


def settings(bench, setting, values, title):
    lines = [("model", *values)]
    measured = {}
    for model in ("lr", "lenet"):
        runs = {}
        for _ in range(bench.rounds):
            for value in values:
                bench.say(f"{setting}: {model} {value}")
                runs.setdefault(value, []).append(
                    bench.ours.train(model, bench.seconds, 1, "--async", "--threads", "1", f"--{setting}", value))
        measured[model] = runs
        rates = {value: best(runs[value], "steps_per_s")["steps_per_s"] for value in values}
        lines.append((model, *(f"{rate:.0f}" for rate in rates.values())))
    return title, lines, measured


def durability(bench):
    """The cost of each durability in a training."""
    return settings(bench, "durability", ("process", "machine", "checkpoint"),
                    "steps/s in each durability, one asynchronous worker")


def wire(bench):
    """Element types on the network."""
    return settings(bench, "wire", ("f32", "bf16", "f16"),
                    "steps/s with each element type on the wire, one asynchronous worker")


ROWS = {row.__name__: row for row in (tensorflow, ends, exchange, waiting, updates, scaling, durability, wire)}
