"""The dashboard in a real browser, with real runs: dash_test.py LOCKSTEP [SCREENSHOTS]

Everything is done by clicks and keys; a message in the browser's console fails the test.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from page import Browser  # first: it ends the program where there is no selenium

import looks
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

PATIENCE = 120
LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
SCREENSHOTS = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
DATASET = "mnist" if pathlib.Path(os.environ.get("LOCKSTEP_DATA", ""), "mnist").is_dir() else "fashion-mnist"
EXPERIMENT = """name: tiny
title: Two batch sizes
warm_up: 0
base: {model: lr, dataset: DATASET, epochs: 1, train_limit: 2000, test_limit: 500}
grid: {batch: [50, 100]}
"""


def environment():
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def lockstep(folder, *arguments):
    return subprocess.run([LOCKSTEP, *arguments], cwd=folder, env=environment(), check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE).stdout


def train(folder, *arguments):
    return lockstep(folder, "train", "lr", "--dataset", DATASET, "--train-limit", "4000", "--test-limit", "1000", "--threads", "1", *arguments)


def wait_until(ready, what):
    deadline = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(StaleElementReferenceException):
            if result := ready():
                return result
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}")
        time.sleep(0.05)


class Page(Browser):
    """The dashboard, whose contents appear gradually."""

    def emulate(self, width, height, dark):
        self.width(width, height, width < 500)
        self.media("dark" if dark else "light")

    def one(self, css):
        return wait_until(lambda: (found := self.all(css)) and found[0], f"an element {css}")

    def texts(self, css):
        return [element.text for element in self.all(css)]

    def click(self, css):
        def clicked():  # once more where the page has drawn it anew in between
            element = self.one(css)
            self.script("arguments[0].scrollIntoView({block: 'center'})", element)
            element.click()
            return True
        wait_until(clicked, f"a click on {css}")

    def shot(self, name):
        if SCREENSHOTS:
            self.driver.save_screenshot(str(SCREENSHOTS / f"{name}.png"))


class DashTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)
        train(cls.path, "--epochs", "2", "--run-dir", "runs/plain", "--batch", "50")
        train(cls.path, "--epochs", "2", "--run-dir", "runs/large-batch", "--batch", "400", "--lr", "0.3")
        train(cls.path, "--epochs", "2", "--run-dir", "runs/cluster", "--workers", "2", "--ps", "1", "--mode", "async")
        cls.damage("runs/damaged")
        cls.crowd("runs/crowded")
        cls.server = subprocess.Popen([LOCKSTEP, "dash", "--port", "0", "--runs-dir", cls.path / "runs", "--lab-dir", cls.path / "lab"], cwd="/", env=environment(), text=True,
                                      stdout=subprocess.PIPE)
        cls.addClassCleanup(cls.stop_server)
        cls.address = next(line.strip() for line in cls.server.stdout if line.startswith("http://"))
        cls.page = Page(cls.path)
        cls.addClassCleanup(cls.page.close)

    @classmethod
    def stop_server(cls):
        cls.server.send_signal(signal.SIGINT)
        code = cls.server.wait(timeout=PATIENCE)
        cls.server.stdout.close()
        assert code == 0, code

    @classmethod
    def damage(cls, name):
        shutil.copytree(cls.path / "runs/plain", cls.path / name)
        (cls.path / name / "summary.json").write_text('{"steps": ')
        (cls.path / name / "evals.csv").write_text("step,loss\n1,<b>x</b>\n")

    @classmethod
    def crowd(cls, name):
        """Makes a run with the longest figures, and faults one after the other."""
        run = cls.path / name
        shutil.copytree(cls.path / "runs/cluster", run)
        summary = json.loads((run / "summary.json").read_text())
        (run / "summary.json").write_text(json.dumps({**summary, "train_loss": 1927920.4306, "test_loss": 363167.8438}))
        (run / "evals.csv").write_text("step,epoch,seconds,loss,accuracy\n10,1,0.1,363167.8438,0.1\n")
        faults = [{"seconds": 0.01 * i, "kind": "cut", "target": "node2", "ended": False, "fault": f"cut node2 for {i}s"} for i in range(1, 7)]
        (run / "faults.jsonl").write_text("".join(json.dumps(fault) + "\n" for fault in faults))

    def setUp(self):
        self.page.emulate(1300, 1000, False)
        self.page.driver.get("about:blank")
        self.page.errors()

    def tearDown(self):
        self.assertEqual(self.page.errors(), [])

    def leave(self):
        """Drops console entries about 404 answers: they are not errors of the page."""
        self.page.driver.get("about:blank")
        self.page.errors()

    def open(self, view):
        self.page.driver.get(f"{self.address}#/{view}")
        self.page.one("#view h1")

    def names(self):
        return self.page.texts("td.c-name a")

    def table_of_runs(self):
        self.open("runs")
        wait_until(lambda: len(self.names()) >= 4, "four runs")

    def points(self, chart="accuracy"):
        """Returns the number of points of a curve, from the chart's own table."""
        return self.page.script("""
            const box = document.querySelector(`[data-chart="${arguments[0]}"]`);
            if (!box) return 0;
            const details = box.querySelector("details.chart-data");
            if (!details.open) { details.open = true; return 0; }
            return box.querySelectorAll("tbody tr").length;""", chart)

    # ---- the list

    def test_a_click_on_a_heading_sorts(self):
        self.table_of_runs()
        batches = lambda: [int(text) for text in self.page.texts("td.c-batch")]
        self.page.click("th[data-column=batch] button")
        wait_until(lambda: batches() == sorted(batches(), reverse=True), "the largest batch first")
        self.page.click("th[data-column=batch] button")
        wait_until(lambda: batches() == sorted(batches()), "the smallest batch first")
        self.assertEqual(self.page.one("th[data-column=batch]").get_attribute("aria-sort"), "ascending")
        self.page.driver.refresh()
        wait_until(lambda: len(batches()) >= 4 and batches() == sorted(batches()), "the same order after a reload")
        self.page.shot("runs")

    def test_words_and_states_filter(self):
        self.table_of_runs()
        self.page.driver.find_element(By.TAG_NAME, "body").send_keys("/")
        ActionChains(self.page.driver).send_keys("async").perform()
        wait_until(lambda: sorted(self.names()) == ["cluster", "crowded"], "only the runs that have the word")
        self.page.one("input[type=search]").send_keys(Keys.CONTROL, "a", Keys.BACKSPACE)
        Select(self.page.one("select")).select_by_value("broken")
        wait_until(lambda: self.names() == ["damaged"], "only the broken run")
        self.page.one("input[type=search]").send_keys("nothing-of-this-name")
        self.assertIn("No run matches", self.page.one(".empty h2").text)

    def test_keys_filter_and_unknown_ones_are_said(self):
        self.table_of_runs()
        search = self.page.one("input[type=search]")
        search.send_keys("batch>=400 state=ended")
        wait_until(lambda: self.names() == ["large-batch"], "the run with the large batch")
        search.send_keys(Keys.CONTROL, "a", Keys.BACKSPACE)
        search.send_keys("bach=50")
        wait_until(lambda: "did you mean 'batch'" in self.page.one("#view").text, "a hint")

    def test_columns_are_chosen_and_saved_as_csv(self):
        self.table_of_runs()
        self.page.click("details.menu summary")
        self.page.click("details.menu [data-column=how]")
        self.page.one("details.menu input[type=text]").send_keys("lr", Keys.ENTER)
        wait_until(lambda: self.page.texts("tr[data-key=large-batch] td.c-lr") == ["0.3"], "the learning rate")
        self.assertEqual(self.page.all("td.c-how"), [])
        self.page.one("input[type=search]").send_keys("large")
        wait_until(lambda: self.names() == ["large-batch"], "one run")
        self.page.script("[...document.querySelectorAll('.toolbar button')].find((one) => one.textContent === 'CSV').click()")
        head, row = self.page.saved("runs.csv").decode().splitlines()
        cells = dict(zip(head.split(","), row.split(",")))
        self.assertEqual((cells["name"], cells["state"], cells["batch"], cells["lr"]), ("large-batch", "ended", "400", "0.3"))

    def test_a_run_that_is_not_there_has_no_empty_headings(self):
        self.page.driver.get(f"{self.address}#/run/nothing")
        wait_until(lambda: "No such run" in self.page.texts("#view h1"), "what is missing")
        self.assertEqual([text for text in self.page.texts("#view h2") if text], [])
        self.leave()

    def test_chosen_runs_are_compared(self):
        self.table_of_runs()
        for name in ("plain", "large-batch"):
            self.page.click(f"tr[data-key={name}] input")
        self.page.click("[data-action=compare]")
        wait_until(lambda: len(self.page.all("[data-chart=accuracy] .legend button")) == 2, "two curves")
        self.assertEqual(self.page.texts("[data-chart=accuracy] .legend button"), ["plain", "large-batch"])
        self.assertEqual(self.page.texts("tr[data-setting=batch] td"), ["50", "400"])
        self.assertEqual(self.page.all("tr[data-setting=dataset]"), [])
        self.page.shot("compare")
        self.page.click("[data-chart=accuracy] .legend button")
        self.assertEqual(self.page.one("[data-chart=accuracy] .legend button").get_attribute("aria-pressed"), "false")
        self.page.click(".choice [data-value=seconds]")
        wait_until(lambda: "over=seconds" in self.page.driver.current_url, "the axis in the address")
        self.page.click(".chip .off")
        wait_until(lambda: self.page.texts(".chip") == ["large-batch"], "one run fewer")

    def test_equal_runs_are_seen_to_be_equal(self):
        shutil.copytree(self.path / "runs/plain", self.path / "runs/twin")
        try:
            self.open("compare/plain,twin")
            wait_until(lambda: self.page.texts("[data-chart=loss] .legend .same") == ["same as plain"], "that they are the same")
            self.assertTrue(self.page.all("[data-chart=loss] svg.plot .series.same[data-series=twin]"))
        finally:
            shutil.rmtree(self.path / "runs/twin")

    def test_boxes_stay_chosen_on_the_way_back(self):
        self.table_of_runs()
        self.page.click("tr[data-key=plain] input")
        self.page.click("[data-action=compare]")
        wait_until(lambda: self.page.texts(".chip"), "the comparison")
        self.page.driver.back()
        wait_until(lambda: self.page.one("[data-action=compare]").text == "Compare 1", "the choice")
        self.assertTrue(wait_until(lambda: self.page.one("tr[data-key=plain] input").is_selected(), "its box"))

    def test_no_more_can_be_chosen_than_are_compared(self):
        copies = [self.path / f"runs/copy-{i}" for i in range(17)]
        for copy in copies:
            shutil.copytree(self.path / "runs/plain", copy)
        try:
            self.table_of_runs()
            wait_until(lambda: len(self.page.all("tr[data-key^=copy] input")) == 17, "the copies")
            for i in range(16):
                self.page.click(f"tr[data-key=copy-{i}] input")
            wait_until(lambda: "the most possible" in self.page.one("[data-action=compare]").text, "that these are the most")
            wait_until(lambda: not self.page.one("tr[data-key=copy-16] input").is_enabled(), "no more to choose")
            self.page.click("tr[data-key=copy-0] input")
            wait_until(lambda: self.page.one("tr[data-key=copy-16] input").is_enabled(), "one more to choose")
        finally:
            for copy in copies:
                shutil.rmtree(copy)
        wait_until(lambda: not self.page.all("tr[data-key^=copy]"), "the copies gone")

    def test_how_long_ago_grows_by_itself(self):
        self.table_of_runs()
        self.page.script("const now = Date.now; Date.now = () => now() + 7200e3")
        self.page.one("input[type=search]").send_keys("plain")
        wait_until(lambda: self.page.texts("tr[data-key=plain] td.c-changed") == ["2 h ago"], "the row's age")

    def test_long_names_keep_both_ends(self):
        name = "lenet-layout=PW-W-W-W-mode=async-batch=128-threads=1-r3"
        shutil.copytree(self.path / "runs/plain", self.path / "runs" / name)
        try:
            self.table_of_runs()
            link = self.page.one(f"tr[data-key='{name}'] td.c-name a")
            self.assertRegex(link.text, r"^lenet-layo….*threads=1-r3$")
            self.assertEqual(link.get_attribute("title"), name)
            self.page.emulate(1280, 1000, False)
            self.assertEqual(self.page.script("const box = document.querySelector('.scroll'); return box.scrollWidth - box.clientWidth"), 0)
        finally:
            shutil.rmtree(self.path / "runs" / name)

    # ---- a run

    def test_a_run_opens_with_figures_curves_and_reasons(self):
        self.table_of_runs()
        self.page.click("tr[data-key=cluster] td.c-name a")
        wait_until(lambda: self.page.one("#view h1").text == "cluster", "its page")
        wait_until(lambda: self.points() == 2, "a point for each epoch")
        wait_until(lambda: len(self.page.all("[data-role]")) == 3, "two workers and a server")
        self.assertRegex(self.page.one("[data-figure='accuracy on test data'] b").text, r"\d+\.\d\d %")
        self.assertTrue(self.page.one(".why .lead").text)
        self.assertTrue(self.page.all("[data-chart=cluster-phases] svg .bar"))
        self.page.click("details.card summary")
        self.assertIn("batch", self.page.one("dl.columns").text)
        self.page.shot("run")

    def test_a_damaged_run_says_so(self):
        self.open("run/damaged")
        wait_until(lambda: len(self.page.all(".notice.warn")) >= 2, "its warnings")
        self.assertIn("summary.json", " ".join(self.page.texts(".notice")))
        self.assertEqual(self.page.all(".notice b"), [], "text of files is no markup")

    def test_a_broken_run_says_how_it_goes_on(self):
        broken = self.path / "runs/broken"
        shutil.copytree(self.path / "runs/plain", broken)
        (broken / "summary.json").unlink()
        try:
            self.open("run/broken")
            command = self.page.one(".notice.bad code").text
            self.assertEqual(command, f"lockstep train --resume {broken}")
            subprocess.run([LOCKSTEP, *command.split()[1:], "--epochs", "3"], cwd="/", env=environment(), check=True,
                           stdout=subprocess.DEVNULL, timeout=PATIENCE)
        finally:
            shutil.rmtree(broken)
        wait_until(lambda: "not exist" in self.page.one("#view").text, "the run gone")
        self.leave()

    def test_the_curve_grows_while_it_trains(self):
        self.table_of_runs()
        training = subprocess.Popen(
            [LOCKSTEP, "train", "lenet", "--dataset", DATASET, "--train-limit", "2000", "--test-limit", "500", "--run-dir", "runs/live", "--epochs", "100000",
             "--eval-every", "10", "--log-every", "2", "--threads", "1", "--workers", "1", "--ps", "1"],
            cwd=self.path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: "live" in self.names(), "the new run in the list, without a reload")
            link, steps = self.page.one("tr[data-key=live] td.c-name a"), self.page.one("tr[data-key=live] td.c-steps")
            before = steps.text
            wait_until(lambda: steps.text != before, "a row that counts, in place")
            link.click()
            wait_until(lambda: self.page.one(".title .badge").text == "training", "its state")
            wait_until(lambda: self.points("train_loss") >= 3, "points")
            before = self.points("train_loss")
            self.page.script("window.notReloaded = true")
            self.zoom("train_loss")
            wait_until(lambda: self.points("train_loss") > before + 3, "more points")
            self.assertTrue(self.page.script("return window.notReloaded"))
            self.assertTrue(wait_until(lambda: [self.is_zoomed("train_loss")], "its buttons")[0],
                            "the zoom stays while the curve grows")
            self.page.shot("live")
            self.page.click("[data-view=cluster]")
            wait_until(lambda: self.page.all("[data-run=live] [data-role='worker:0'] [data-state=alive]"), "the worker alive")
            wait_until(lambda: re.search(r"CPU\s*\d+ %", self.page.one(".node").text), "the node's load")
            link, head = self.page.one("[data-run=live] h2 a"), self.page.one("[data-run=live] .title span").text
            wait_until(lambda: self.page.one("[data-run=live] .title span").text != head, "a node that counts")
            self.assertEqual(link.text, "live")
            self.page.shot("cluster")
        finally:
            training.send_signal(signal.SIGINT)
            training.wait(timeout=PATIENCE)
        wait_until(lambda: "No run is training" in self.page.one("#view").text, "the end seen, without a reload")

    def zoom(self, chart):
        def zoomed():  # the chart grows meanwhile, and may take the dragging for over
            self.page.drag(self.page.one(f"[data-chart={chart}] svg.plot"), 0.4, 0.6)
            return self.is_zoomed(chart)
        wait_until(zoomed, "a zoom")

    def is_zoomed(self, chart):
        return any(button.is_displayed() for button in self.page.all(f"[data-chart={chart}] .chart-buttons button")
                   if button.text == "Reset zoom")

    def test_a_run_that_goes_is_told(self):
        shutil.copytree(self.path / "runs/plain", self.path / "runs/short-lived")
        self.open("run/short-lived")
        wait_until(lambda: self.points() == 2, "its curve")
        shutil.rmtree(self.path / "runs/short-lived")
        wait_until(lambda: "does not exist" in self.page.one("#view").text, "a notice")
        self.leave()

    # ---- the lab

    def test_experiments_and_their_reports(self):
        self.open("experiments")
        self.assertIn("No experiments yet", self.page.one(".empty h2").text)
        (self.path / "tiny.yaml").write_text(EXPERIMENT.replace("DATASET", DATASET))
        lockstep(self.path, "lab", "run", "tiny.yaml")
        wait_until(lambda: "2 of 2 runs done" in self.page.one("#view").text, "the experiment, without a reload")
        self.page.shot("experiments")
        self.page.click("[data-experiment=tiny] h2 a")
        wait_until(lambda: self.page.texts("td.c-state") == ["done", "done"], "its runs")
        self.page.shot("experiment")
        report = self.page.one("a[href='report/tiny']")
        self.page.driver.get(report.get_attribute("href"))
        wait_until(lambda: "Two batch sizes" in self.page.one("h1").text, "the report")
        self.page.driver.back()
        self.page.click("td.c-key a")
        wait_until(lambda: self.page.all("[data-chart=accuracy]"), "the run of the experiment")
        self.leave()
        shutil.rmtree(self.path / "lab")

    # ---- looks

    def test_light_dark_and_the_button_between(self):
        self.table_of_runs()
        back = lambda: self.page.script("return getComputedStyle(document.body).backgroundColor")
        light = back()
        self.page.emulate(1300, 1000, True)
        dark = back()
        self.assertNotEqual(light, dark)
        self.page.shot("dark")
        self.page.click("#theme")
        self.assertEqual(back(), light)
        self.page.driver.refresh()
        self.page.one("#view h1")
        self.assertEqual(back(), light)
        self.page.script("localStorage.clear()")

    def test_every_page_looks_right_in_all_widths_and_modes(self):
        for name, view in looks.views(self.address):
            # These show less than others do: runs of one process than one of a cluster, the filtered list than the whole one.
            if name not in ("run-plain", "run-large-batch", "runs-filtered"):
                with self.subTest(name):
                    self.assertEqual(looks.all_faults(self.page, f"{self.address}#/{view}"), [])
        self.leave()

    def test_the_keyboard_is_enough(self):
        self.table_of_runs()
        self.page.script("document.querySelector('tr[data-key=plain] a').focus()")
        ActionChains(self.page.driver).send_keys(Keys.ENTER).perform()
        wait_until(lambda: self.page.one("#view h1").text == "plain", "its page")
        nameless = self.page.script("""
            return [...document.querySelectorAll("button, a, input, select, svg[role=img]")].filter((one) =>
              !one.textContent.trim() && !one.getAttribute("aria-label") && !one.querySelector("title")).map((one) => one.outerHTML)""")
        self.assertEqual(nameless, [])


unittest.main(argv=sys.argv[:1])
