"""Turns the records of a contest into a summary, and that into a table."""

import os

import environment


def summarize(results, effort, threads, isa):
    """Returns all measurements as plain values ready for JSON."""
    return {"machine": machine(), "isa": isa, "threads": threads, "rounds": effort.rounds,
            "seconds": effort.seconds, "versions": versions(results),
            "workloads": [summarize_workload(*result, isa) for result in results]}


def summarize_workload(workload, records, skipped, isa):
    columns = {}
    for record in records:
        columns.setdefault(record.contestant.column, []).append(record)
    best = {column: fastest(members) for column, members in columns.items()}
    ms = {column: record and record.best["ms_per_step"] for column, record in best.items()}
    memory = {column: record and record.best.get("memory_mb") for column, record in best.items()}
    peers = {column: value for column, value in ms.items() if column != "ours" and value}
    winner = min(peers, key=peers.get, default=None)
    ratio = peers[winner] / ms["ours"] if winner and ms["ours"] else None
    disturbed = [column for column, record in best.items() if record and record.best["disturbed"]]
    target = workload.target_for(isa)
    decided = ratio and target and not disturbed
    return {"name": workload.name, "model": workload.model, "batch": workload.batch,
            "optimizer": workload.optimizer, "precision": workload.precision, "epoch": workload.epoch,
            "skipped": skipped, "ms_per_step": ms, "memory_mb": memory, "disturbed": disturbed,
            "fastest_peer": winner and f"{winner} ({best[winner].contestant.name})", "ratio": ratio,
            "target": target, "met": ratio >= target if decided else None,
            "memory_met": below_torch(records) if workload.below_torch else None,
            "contestants": [summarize_record(record) for record in records]}


def below_torch(records):
    """Returns True if ours at its largest needed less memory than every PyTorch at its smallest."""
    peaks = [(record.contestant.column, run["memory_mb"]) for record in records for run in record.runs
             if "memory_mb" in run]
    own = [peak for column, peak in peaks if column == "ours"]
    torch = [peak for column, peak in peaks if column in ("PyTorch", "torch.compile")]
    return max(own) < min(torch) if own and torch else None


def fastest(records):
    """Returns the record with a column's best run, None if all failed."""
    good = [record for record in records if record.best]
    return min(good, key=lambda record: record.best["ms_per_step"], default=None)


def summarize_record(record):
    return {"name": record.contestant.name, "column": record.contestant.column,
            "ms_per_step": record.best and record.best["ms_per_step"], "error": record.error, "runs": record.runs}


def versions(results):
    seen = {run["version"] for _, records, _ in results for record in records for run in record.runs
            if "version" in run}
    return sorted(seen)


def machine():
    cpu = "unknown processor"
    with open("/proc/cpuinfo") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                cpu = value.strip()
    return {"cpu": cpu, "isa": environment.machine_isa(), "cores": len(os.sched_getaffinity(0))}


def figure(workload, column):
    if workload["skipped"] or column not in workload["ms_per_step"]:
        return "-"
    value = workload["ms_per_step"][column]
    if value is None:
        return "failed"
    mark = "*" if column in workload["disturbed"] else ""
    return (f"{value:.4f}" if value < 1 else f"{value:.2f}") + mark


def all_columns(summary):
    """Returns the columns of any workload, in the order of the contestants."""
    return list(dict.fromkeys(column for workload in summary["workloads"] for column in workload["ms_per_step"]))


def yes_or_no(met):
    return "-" if met is None else "yes" if met else "no"


def time_table(summary):
    """Returns the header and the rows, as strings."""
    columns = all_columns(summary)
    header = ["ms per step", *columns, "fastest peer", "ratio", "target", "met"]
    rows = []
    for workload in summary["workloads"]:
        figures = [figure(workload, column) for column in columns]
        ratio, target = workload["ratio"], workload["target"]
        rows.append([workload["name"], *figures, workload["fastest_peer"] or "-", f"{ratio:.2f}" if ratio else "-",
                     f"{target:.1f}" if target else "-", yes_or_no(workload["met"])])
    return header, rows


def memory_table(summary):
    columns = all_columns(summary)
    header = ["peak MB", *columns, "below PyTorch"]
    rows = []
    for workload in summary["workloads"]:
        peaks = [workload["memory_mb"].get(column) for column in columns]
        rows.append([workload["name"], *(f"{peak:.0f}" if peak else "-" for peak in peaks),
                     yes_or_no(workload["memory_met"])])
    return header, rows


def failures(summary):
    """Returns one line for each distinct failure, with its workloads."""
    found = {}
    for workload in summary["workloads"]:
        for contestant in workload["contestants"]:
            if contestant["error"]:
                found.setdefault((contestant["name"], contestant["error"]), []).append(workload["name"])
    return [f"{name} failed ({', '.join(names)}): {error}" for (name, error), names in found.items()]


def description(summary):
    cpu = summary["machine"]
    workloads = summary["workloads"]
    notes = [f"{w['name']} skipped: {w['skipped']}" for w in workloads if w["skipped"]]
    if any(workload["disturbed"] for workload in workloads):
        notes.append("*: other processes ran beside even the best run; not to be trusted")
    if summary["isa"] != cpu["isa"]:
        notes.append(f"limited to {summary['isa']}, save TensorFlow's own Eigen kernels, which have no such switch")
    return [*notes,
            f"ratio: fastest peer / ours; rounds: {summary['rounds']}, threads: {summary['threads']}",
            "peak MB: of the whole process, with its libraries and interpreter, in the run that is shown",
            f"machine: {cpu['cpu']}, {cpu['isa']}, {cpu['cores']} cores",
            f"versions: {', '.join(summary['versions']) or 'none ran'}"]


def text(summary):
    def lines(header, rows):
        widths = [max(map(len, column)) for column in zip(header, *rows)]
        for cells in (header, ["-" * width for width in widths], *rows):
            first, *rest = (cell.ljust(w) if i == 0 else cell.rjust(w)
                            for i, (cell, w) in enumerate(zip(cells, widths)))
            yield "  ".join([first, *rest])
        yield ""

    return "\n".join([*lines(*time_table(summary)), *lines(*memory_table(summary)),
                      *failures(summary), *description(summary)])


def markdown(summary):
    def lines(header, rows):
        for cells in (header, ["---", *["---:"] * (len(header) - 1)], *rows):
            yield "| " + " | ".join(cells) + " |"
        yield ""

    notes = [f"- {line}" for line in failures(summary) + description(summary)]
    return "\n".join([*lines(*time_table(summary)), *lines(*memory_table(summary)), *notes])


def aligned(lines):
    """Formats lines of cells as columns of text."""
    texts = [[str(cell) for cell in line] for line in lines]
    widths = [max(len(line[i]) for line in texts) for i in range(len(texts[0]))]
    padded = (("  " + cell.ljust(width) for cell, width in zip(line, widths)) for line in texts)
    return "\n".join("".join(cells).rstrip() for cells in padded)
