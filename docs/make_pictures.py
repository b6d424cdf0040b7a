#!/usr/bin/env python3
"""Runs lockstep in its own terminal and keeps what it shows as SVG pictures in docs/pictures, and pages as Chromium
shows them as PNG.

usage: docs/make_pictures.py [PROGRAM]        (default build/release/lockstep)

MNIST must be found as `lockstep data list` finds it; otherwise Fashion-MNIST is used.
"""

import base64
import fcntl
import html
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import urllib.request
from pathlib import Path

COLUMNS = 100
COLOURS = {"31": "#e06c75", "32": "#98c379", "33": "#e5c07b", "34": "#61afef", "35": "#c678dd", "36": "#56b6c2",
           "91": "#f0959d", "92": "#b9dba0", "93": "#f2dba6", "94": "#93c8f7", "95": "#dda6ec", "96": "#8ed0d9"}
BACKGROUND, FOREGROUND, FAINT, PROMPT = "#1e2127", "#d7dae0", "#7f8590", "#61afef"
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 18, 14


def kill_role(folder, role):
    """Ends one role of the cluster that runs in `folder`, as a crash would."""
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if f"--task={role}".encode() in words and os.readlink(process / "cwd") == folder:
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            pass  # it has just ended, or is none of ours


def run_in_terminal(command, folder, kill=None):
    """What the command writes to a terminal of COLUMNS columns. `kill`: a role to end after some seconds."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = dict(os.environ, TERM="xterm", LANG="C.UTF-8")
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(command, cwd=folder, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    output, start = b"", time.monotonic()
    try:
        while True:
            if select.select([master], [], [], 0.2)[0]:
                output += os.read(master, 65536)
            if kill and time.monotonic() - start > 4:
                kill_role(os.path.realpath(folder), kill)
                kill = None
    except OSError:
        pass  # the terminal's other end is closed
    if process.wait() != 0:
        sys.exit(f"failed: {' '.join(command)}\n{output.decode()}")
    return output.decode()


def screen(text):
    """The lines that remain on the screen, each a list of (character, style)."""
    lines, row, column, style = [[]], 0, 0, ""
    for token in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|[\s\S]", text):
        if token == "\n":
            row, column = row + 1, 0
        elif token == "\r":
            column = 0
        elif token == "\x1b[K":
            del lines[row][column:]
        elif token == "\x1b[J":
            del lines[row][column:]
            del lines[row + 1:]
        elif re.fullmatch(r"\x1b\[[0-9]*A", token):
            row = max(0, row - int(token[2:-1] or 1))
        elif token.endswith("m") and token.startswith("\x1b"):
            style = token[2:-1].replace("0", "") if token == "\x1b[0m" else token[2:-1]
        elif not token.startswith("\x1b"):
            lines[row] += [(" ", "")] * (column - len(lines[row]))
            lines[row][column:column + 1] = [(token, style)]
            column += 1
        while len(lines) <= row:
            lines.append([])
    while lines and not lines[-1]:
        lines.pop()
    return lines


def spans(line):
    """Runs of characters of one style: (first column, text, style)."""
    runs = []
    for column, (character, style) in enumerate(line):
        if runs and runs[-1][2] == style:
            runs[-1][1] += character
        else:
            runs.append([column, character, style])
    return runs


def svg(lines):
    width = COLUMNS * CELL_WIDTH + 2 * MARGIN
    height = len(lines) * CELL_HEIGHT + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        f'<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" fill="{FOREGROUND}">',
    ]
    for row, line in enumerate(lines):
        y = MARGIN + (row + 0.75) * CELL_HEIGHT
        for column, text, style in spans(line):
            if not text.strip():
                continue
            fill = FAINT if style == "2" else PROMPT if style == "prompt" else COLOURS.get(style, FOREGROUND)
            bold = ' font-weight="bold"' if style in ("1", "prompt") else ""
            x = MARGIN + column * CELL_WIDTH
            parts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}"{bold} xml:space="preserve" '
                         f'textLength="{len(text) * CELL_WIDTH:.1f}">{html.escape(text)}</text>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


def midway(text):
    """The output as it stood when a bar in its middle had just been drawn."""
    bars = [match.end() for match in re.finditer(r"examples/s[^\r]*left\x1b\[K", text)]
    return text[:bars[len(bars) * 2 // 3]]


def after_restart(text):
    """The output as it stood some time after a role had been started again."""
    restart = text.index("restarting it")
    blocks = [match.end() for match in re.finditer(r"\x1b\[K\x1b\[J", text[restart:])]
    return text[:restart + blocks[len(blocks) // 2]]


def picture(name, program, arguments, folder, pictures, moment=lambda text: text, kill=None):
    lines = [[(character, "prompt") for character in "$ lockstep " + " ".join(arguments)]]
    lines += screen(moment(run_in_terminal([program, *arguments], folder, kill)))
    (pictures / f"{name}.svg").write_text(svg(lines))
    print(f"docs/pictures/{name}.svg")


class Browser:
    """Chromium without a window, steered by chromedriver."""

    def __init__(self, size):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        port = next(found[1] for line in self.driver.stdout if (found := re.search(r"on port (\d+)\.", line)))
        self.address = f"http://127.0.0.1:{port}/session"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-proxy-server",
                     "--window-size={},{}".format(*size)]
        options = {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}
        self.address += "/" + self.ask("", {"capabilities": options})["sessionId"]

    def ask(self, what, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.address + what, data), timeout=60) as answer:
            return json.load(answer)["value"]

    def close(self):
        with urllib.request.urlopen(urllib.request.Request(self.address, method="DELETE"), timeout=60):
            self.driver.terminate()
        self.driver.wait(timeout=30)


def page(name, url, size, lines, pictures):
    """A page as Chromium shows it, once it has drawn so many lines."""
    browser = Browser(size)
    try:
        browser.ask("/url", {"url": url})
        drawn = {"script": "return document.querySelectorAll('svg path').length", "args": []}
        deadline = time.monotonic() + 60
        while browser.ask("/execute/sync", drawn) < lines:
            if time.monotonic() > deadline:
                sys.exit(f"{url} has not drawn {lines} lines within a minute")
            time.sleep(0.2)
        time.sleep(1)  # what moves while it appears comes to rest
        (pictures / f"{name}.png").write_bytes(base64.b64decode(browser.ask("/screenshot")))
    finally:
        browser.close()
    print(f"docs/pictures/{name}.png")


def dash_picture(program, folder, pictures, view):
    """The dashboard over the runs of the folder."""
    dash = subprocess.Popen([program, "dash", "--port", "0"], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        url = next(word for line in dash.stdout for word in line.split() if word.startswith("http://"))
        page("dash", url + view, (1280, 1000), 3, pictures)
    finally:
        dash.send_signal(signal.SIGINT)
        dash.wait(timeout=30)


def main():
    root = Path(__file__).resolve().parent.parent
    program = str(Path(sys.argv[1] if len(sys.argv) > 1 else root / "build/release/lockstep").resolve())
    have_mnist = subprocess.run([program, "data", "get", "mnist"], capture_output=True).returncode == 0
    dataset = [] if have_mnist else ["--dataset", "fashion-mnist"]
    pictures = root / "docs/pictures"
    pictures.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        if data := os.environ.get("LOCKSTEP_DATA"):  # no path of this machine belongs into a picture
            os.symlink(Path(data).resolve(), Path(folder) / "data")
            os.environ["LOCKSTEP_DATA"] = "data"
        train = ["train", "lenet", *dataset, "--epochs", "5"]
        picture("train", program, train, folder, pictures)
        picture("progress", program, train, folder, pictures, midway)
        cluster = ["train", "lenet", *dataset, "--workers", "3", "--ps", "1", "--async", "--evaluator"]
        picture("cluster", program, cluster, folder, pictures, after_restart, kill="worker:1")
        synchronous = ["train", "lenet", *dataset, "--workers", "2", "--ps", "1", "--epochs", "5"]
        run_in_terminal([program, *synchronous], folder)
        picture("show", program, ["show", "lenet-4"], folder, pictures)
        picture("why", program, ["why", "lenet-4", "--against", "lenet-1"], folder, pictures)
        picture("predict", program, ["predict", "lenet-1", "--test", "6"], folder, pictures)
        study = [program, "lab", "run", str(root / "experiments/study-3.yaml"), "--scale", "quick"]
        subprocess.run(study + ([] if os.geteuid() == 0 else ["--local"]), cwd=folder, check=True, stdout=subprocess.DEVNULL)
        page("report", f"file://{folder}/lab/study-3-quick/report.html", (1200, 1250), 3, pictures)
        dash_picture(program, folder, pictures, "#/run/lenet-4")


if __name__ == "__main__":
    main()
