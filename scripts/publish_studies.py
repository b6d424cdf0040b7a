#!/usr/bin/env python3
"""Publishes finished experiments: writes their reports to docs/reports/ and their verdicts into docs/studies.md, between
`<!-- NAME -->` and `<!-- end -->`.

  scripts/publish_studies.py [--lab-dir lab] [--program build/release/lockstep] [--scale paper] [--commit COMMIT] [NAME ...]
  scripts/publish_studies.py --from FOLDER --commit COMMIT [NAME ...]
  scripts/publish_studies.py --look REPORT.html

Without names: all experiments that docs/studies.md has a place for and the lab has results of. Needs git, for the commit.
With --look, only gives all published reports the style and the scripts of a report that the present program wrote.
With --from, results from another machine: NAME.html (of `lockstep lab report`) and NAME.json (of `lockstep lab export --to json`).
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
LARGEST = 1 << 20  # bytes of a report


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ").strip()


def verdict_of(finding):
    """The verdict, and how the tests came out if it does not say that alone: "holds in 3 of 5 cases, within noise in 2", or
    "holds in part (time: holds; loss: does not hold)"."""
    verdict = finding["verdict"]
    verdicts = "holds in part|holds|does not hold|within noise|not judged"
    tests = []
    for sentence in finding["sentences"]:
        found = re.fullmatch(rf"(.*?): .*: ((?:{verdicts})\b[^:]*)\.", sentence, re.S)
        if found:
            field = re.split(r",| over (?!sent|network)| by | of the workers| \(", found[1])[0]
            tests.append((field[:1].lower() + field[1:] if not field[:2].isupper() else field, found[2]))
    plain = re.compile(r" in (?:both|all \d+) cases")
    if all(plain.sub("", result) == verdict for _, result in tests):
        return verdict
    if len(tests) == 1:
        result = tests[0][1]
        return result if result.startswith(verdict) else f"{verdict} ({result})"
    return f"{verdict} (" + "; ".join(f"{field}: {result}" for field, result in tests) + ")"


def section(results, report, commit):
    done = [run for run in results["runs"] if run["state"] == "done"]
    disturbed = sum(1 for run in done if run["measured"].get("disturbed"))
    minutes = sum(run["ended"] - run["started"] for run in done) / 60
    where = results["environment"]
    day = datetime.datetime.fromtimestamp(max(run["ended"] for run in done), datetime.timezone.utc)
    time = "a minute" if minutes < 1.5 else f"{minutes:.0f} minutes"
    lines = [f"{len(done)} of {len(results['runs'])} runs in {time} on {where['cores']} cores of an "
             f"{where['processor']}, commit {commit}, {day.day} {day:%B %Y}; {disturbed or 'no'} disturbed. "
             f"[The report](reports/{report.name}) has tables, plots and what was left out.", "",
             "| finding | here |", "| --- | --- |"]
    for finding in results["findings"]:
        ours = " (ours)" if finding["ours"] else ""
        why = next((s for s in finding["sentences"] if s.startswith("Not judged here: ")), "")
        verdict = finding["verdict"] + ": " + why.removeprefix("Not judged here: ") if why else verdict_of(finding)
        lines.append(f"| {cell(finding['says'])}{ours} | {cell(verdict)} |")
    return "\n".join(lines)


def from_lab(name, options):
    """The results and the report of a lab here; None without finished runs."""
    scale = ["--scale", options.scale] if options.scale and name != "quickstart" else []
    lab = [options.program, "lab"]
    known = output(*lab, "export", name, *scale, "--lab-dir", options.lab_dir, "--to", "json")
    results = json.loads(known.stdout) if known.returncode == 0 else {"runs": []}
    if not any(run["state"] == "done" for run in results["runs"]):
        print(f"{name}: no results yet {known.stderr.strip()}")
        return None
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.html"
        made = output(*lab, "report", name, *scale, "--lab-dir", options.lab_dir, "-o", str(report))
        if made.returncode != 0:
            sys.exit(f"{name}: {made.stderr.strip()}")
        return results, report.read_text()


def from_folder(name, folder):
    """The same from files that were made on another machine."""
    results, report = folder / f"{name}.json", folder / f"{name}.html"
    if not results.exists() or not report.exists():
        print(f"{name}: no {results.name} and {report.name} in {folder}")
        return None
    found = json.loads(results.read_text())
    if found["experiment"] != name:
        sys.exit(f"{results}: of the experiment '{found['experiment']}'")
    return found, report.read_text()


def without_places(html):
    """Names files as this repository does, and leaves out where the lab kept its runs."""
    html = re.sub(r"(lockstep lab run )\S*?((?:examples/\S*/)?[^/\s]+\.yaml[^<\n]*)",
                  lambda m: m[1] + ("" if m[2].startswith("examples/") else "experiments/") + m[2], html)
    html = re.sub(r"(<code>)/[^<]*/([^/<]+/runs/)", r"\1lab/\2", html)
    html = re.sub(r"(Linux \d+\.\d+\.\d+)-[^<\s]+", r"\1", html)  # the kernel's version, without its builder's name for it
    return re.sub(r"(lockstep lab run [^<\n]*?) --lab-dir \S+", r"\1", html)


def give_look(source):
    """Gives the published reports the style and the scripts of another report; their figures stay."""
    parts = [re.compile(r"(?<=<style>\n).*?(?=</style>)", re.S), re.compile(r"(?<=<script>\n).*?(?=</script>)", re.S)]
    fresh = [part.search(source.read_text()) for part in parts]
    if not all(fresh):
        sys.exit(f"{source}: no report")
    for report in sorted((ROOT / "docs/reports").glob("*.html")):
        html = report.read_text()
        for part, found in zip(parts, fresh):
            html, count = part.subn(lambda _: found[0], html)
            if count != 1:
                sys.exit(f"{report}: {count} places for its style or scripts")
        report.write_text(html)
        print(f"{report.relative_to(ROOT)}: {len(html) / 1e6:.2f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab-dir", default="lab")
    parser.add_argument("--program", default="build/release/lockstep")
    parser.add_argument("--scale", default="paper")
    parser.add_argument("--commit", help="commit of the program that made the runs; default: the present one")
    parser.add_argument("--from", dest="folder", type=pathlib.Path, help="folder with NAME.html and NAME.json of another machine")
    parser.add_argument("--look", type=pathlib.Path, help="report whose style and scripts the published ones get")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.look:
        return give_look(options.look)
    if options.folder and not options.commit:
        sys.exit("--from needs --commit: results do not tell the commit of the program that made them")
    page = ROOT / "docs/studies.md"
    text = page.read_text()
    places = re.findall(r"<!-- ([a-z0-9-]+) -->", text)
    names = options.names or [name for name in places if name != "end"]
    commit = options.commit or output("git", "rev-parse", "--short", "HEAD").stdout.strip()
    for name in names:
        if name not in places:
            sys.exit(f"docs/studies.md has no place for '{name}'; it has {', '.join(p for p in places if p != 'end')}")
        found = from_folder(name, options.folder) if options.folder else from_lab(name, options)
        if not found:
            continue
        results, html = found
        program = f"<span>{results['environment']['program']}</span>"
        if program not in html:
            sys.exit(f"{name}: the report does not name the program as {program}")
        report = ROOT / "docs/reports" / f"{name}.html"
        report.parent.mkdir(exist_ok=True)
        html = html.replace(program, f"{program}<span>commit {commit}</span>", 1)
        report.write_text(without_places(html))
        size = report.stat().st_size
        text = re.sub(rf"(<!-- {name} -->\n).*?(<!-- end -->)",
                      lambda m: m[1] + section(results, report, commit) + "\n" + m[2], text, count=1, flags=re.S)
        page.write_text(text)
        print(f"{name}: {report.relative_to(ROOT)}, {size / 1e6:.2f} MB" + (", too large" if size > LARGEST else ""))


main()
