"""Turns the records of a contest into a summary, and that into a table."""

import os


def summarize(results, effort, threads):
    """Everything measured, as plain values ready for JSON."""
    return {"machine": machine(), "threads": threads, "rounds": effort.rounds,
            "seconds": effort.seconds, "versions": versions(results),
            "workloads": [summarize_workload(*result) for result in results]}


def summarize_workload(workload, records):
    columns = {}
    for record in records:
        columns.setdefault(record.contestant.column, []).append(record)
    best = {column: fastest(members) for column, members in columns.items()}
    ms = {column: run and run["ms_per_step"] for column, run in best.items()}
    peers = {column: value for column, value in ms.items() if column != "ours" and value}
    winner = min(peers, key=peers.get, default=None)
    ratio = peers[winner] / ms["ours"] if winner and ms["ours"] else None
    disturbed = [column for column, run in best.items() if run and run["disturbed"]]
    decided = ratio and workload.target and not disturbed
    return {"name": workload.name, "model": workload.model, "batch": workload.batch,
            "optimizer": workload.optimizer, "epoch": workload.epoch, "ms_per_step": ms,
            "disturbed": disturbed, "fastest_peer": winner, "ratio": ratio, "target": workload.target,
            "met": ratio >= workload.target if decided else None,
            "contestants": [summarize_record(record) for record in records]}


def fastest(records):
    """The best run of a column's contestants, None if all failed."""
    runs = [record.best for record in records if record.best]
    return min(runs, key=lambda run: run["ms_per_step"], default=None)


def summarize_record(record):
    return {"name": record.contestant.name, "column": record.contestant.column,
            "ms_per_step": record.best and record.best["ms_per_step"], "error": record.error, "runs": record.runs}


def versions(results):
    seen = {run["version"] for _, records in results for record in records for run in record.runs
            if "version" in run}
    return sorted(seen)


def machine():
    cpu = {"model name": "unknown processor", "flags": ""}
    with open("/proc/cpuinfo") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() in cpu:
                cpu[key.strip()] = value.strip()
    flags = cpu["flags"].split()
    isa = "avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else "no avx2"
    return {"cpu": cpu["model name"], "isa": isa, "cores": len(os.sched_getaffinity(0))}


def figure(workload, column):
    value = workload["ms_per_step"][column]
    if value is None:
        return "failed"
    mark = "*" if column in workload["disturbed"] else ""
    return (f"{value:.4f}" if value < 1 else f"{value:.2f}") + mark


def table(summary):
    """The header and the rows, as strings."""
    columns = list(summary["workloads"][0]["ms_per_step"])
    header = ["ms per step", *columns, "ratio", "target", "met"]
    rows = []
    for workload in summary["workloads"]:
        figures = [figure(workload, column) for column in columns]
        ratio, target, met = workload["ratio"], workload["target"], workload["met"]
        rows.append([workload["name"], *figures, f"{ratio:.2f}" if ratio else "-",
                     f"{target:.1f}" if target else "-", "-" if met is None else "yes" if met else "no"])
    return header, rows


def failures(summary):
    """One line for each different failure, with the workloads it concerns."""
    found = {}
    for workload in summary["workloads"]:
        for contestant in workload["contestants"]:
            if contestant["error"]:
                found.setdefault((contestant["name"], contestant["error"]), []).append(workload["name"])
    return [f"{name} failed ({', '.join(names)}): {error}" for (name, error), names in found.items()]


def description(summary):
    cpu = summary["machine"]
    disturbed = any(workload["disturbed"] for workload in summary["workloads"])
    notes = ["*: other processes ran beside even the best run; not to be trusted"] if disturbed else []
    return [*notes,
            f"ratio: fastest peer / ours; rounds: {summary['rounds']}, threads: {summary['threads']}",
            f"machine: {cpu['cpu']}, {cpu['isa']}, {cpu['cores']} cores",
            f"versions: {', '.join(summary['versions']) or 'none ran'}"]


def text(summary):
    header, rows = table(summary)
    widths = [max(map(len, column)) for column in zip(header, *rows)]

    def aligned(cells):
        first, *rest = (cell.ljust(w) if i == 0 else cell.rjust(w)
                        for i, (cell, w) in enumerate(zip(cells, widths)))
        return "  ".join([first, *rest])

    lines = [aligned(header), aligned(["-" * width for width in widths]), *map(aligned, rows)]
    return "\n".join([*lines, "", *failures(summary), *description(summary)])


def markdown(summary):
    header, rows = table(summary)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    formatted = ["| " + " | ".join(cells) + " |" for cells in lines]
    notes = [f"- {line}" for line in failures(summary) + description(summary)]
    return "\n".join([*formatted, "", *notes])
