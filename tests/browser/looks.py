"""How pages look at the widths and in the modes that matter: what a program can see, and pictures for people.

looks.py LOCKSTEP FOLDER [--runs-dir DIR] [--lab-dir DIR] [PAGE.html ...]

Opens every page of the dashboard over these runs and experiments, and the given files (reports, plans), at 400, 900 and
1,600 pixels, light and dark, in one browser. Writes a picture of each to FOLDER and prints what is wrong. Ends with 1
if something is.
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

WIDTHS = (400, 900, 1600)
SCHEMES = ("light", "dark")
SCRIPT = pathlib.Path(__file__).with_name("looks.js").read_text()
DRAWN = """
const charts = [...document.querySelectorAll("figure.chart")].filter((one) => one.checkVisibility());
return document.readyState === "complete" && document.querySelector("h1")?.checkVisibility() && !document.querySelector(".loading") &&
  charts.every((one) => Math.abs(one.querySelector("svg.plot")?.viewBox.baseVal.width - Math.max(240, one.querySelector(".chart-frame").clientWidth)) <= 1) &&
  [...document.images].every((one) => one.complete);"""


def each(browser, url):
    """Loads the page in every width, and shows it in every mode."""
    for width in WIDTHS:
        browser.width(width, 900, mobile=width < 500)
        browser.open("about:blank")
        browser.open(url)
        for scheme in SCHEMES:
            browser.media(scheme)
            browser.wait(lambda: browser.script(DRAWN))
            yield width, scheme


def faults(browser):
    """Returns what is wrong with the page as it is shown now."""
    return browser.script(SCRIPT)


def all_faults(browser, url):
    """Returns what is wrong in any width and mode, each with the first of them."""
    found = {}
    for width, scheme in each(browser, url):
        for fault in faults(browser):
            found.setdefault(fault, f"{width} pixels, {scheme}: {fault}")
    return list(found.values())


def views(address):
    """Returns all views of a dashboard: (name, address after #)."""
    def ask(path):
        return json.load(urllib.request.urlopen(f"{address}api/{path}"))

    quoted = lambda text: urllib.parse.quote(text, safe="")
    runs = [run["id"] for run in ask("runs")["runs"]]
    chosen = runs[:40]
    some = [run for run in runs if "~" not in run][:6]
    return [("runs", "runs"), ("runs-filtered", "runs?q=state%3Dended+accuracy%3E50%25"), ("runs-wrong-key", "runs?q=modle%3Dlenet"),
            ("runs-none", "runs?q=no-such-run"), ("cluster", "cluster"), ("experiments", "experiments"), ("run-not-found", "run/nothing"),
            ("compare", "compare/" + ",".join(map(quoted, some))),
            *((f"experiment-{one['id']}", f"experiment/{one['id']}") for one in ask("experiments")["experiments"]),
            *((f"run-{run.replace('~', '-')}", f"run/{quoted(run)}") for run in chosen)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lockstep", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runs-dir", default="runs")
    parser.add_argument("--lab-dir", default="lab")
    parser.add_argument("--only", default="", help="pages whose name contains this")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    options = parser.parse_intermixed_args()
    from page import Browser  # needs the tests' virtual environment

    options.folder.mkdir(parents=True, exist_ok=True)
    server = subprocess.Popen([options.lockstep.resolve(), "dash", "--port", "0", "--runs-dir", options.runs_dir, "--lab-dir", options.lab_dir],
                              text=True, stdout=subprocess.PIPE)
    wrong = 0
    with tempfile.TemporaryDirectory() as downloads:
        browser = Browser(downloads)
        try:
            address = next(line.strip() for line in server.stdout if line.startswith("http://"))
            pages = [(name, f"{address}#/{view}") for name, view in views(address)]
            pages += [(path.stem, path.resolve().as_uri()) for path in options.pages]
            for name, url in pages:
                if options.only not in name:
                    continue
                for width, scheme in each(browser, url):
                    browser.screenshot(options.folder / f"{name}-{width}-{scheme}.png", most=3000)
                    for fault in faults(browser):
                        wrong += 1
                        print(f"{name}, {width} pixels, {scheme}: {fault}", flush=True)
        finally:
            browser.close()
            server.send_signal(signal.SIGINT)
            server.wait()
    print(f"{wrong} faults; pictures in {options.folder}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
