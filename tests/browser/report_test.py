"""A report in a real browser: report_test.py WRITE_REPORT LOCKSTEP [SCREENSHOTS]

Two small trainings are made, then a page with every kind of plot, which is opened from its file as a reader does.
"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import looks
import page
from selenium.webdriver.common.keys import Keys

WRITE_REPORT, LOCKSTEP = sys.argv[1:3]
SCREENSHOTS = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
TRAIN = ("train", "lr", "--dataset", "synthetic", "--batch", "32", "--eval-every", "100", "--log-every", "20",
         "--monitor-every", "0.02", "--threads", "1")


def train(folder, name, *more, epochs=3):
    """Makes a run with enough monitor samples to draw, however few the machine allowed."""
    run = pathlib.Path(folder, f"{name}-{epochs}")
    result = subprocess.run([LOCKSTEP, *TRAIN, "--epochs", str(epochs), "--run-dir", run, *more], capture_output=True,
                            text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    if epochs < 300 and any(len(monitor.read_text().splitlines()) < 7 for monitor in run.rglob("monitor.csv")):
        return train(folder, name, *more, epochs=10 * epochs)
    return run


def shortened(run):
    """Makes another repeat of the run whose samples end earlier."""
    other = run.with_name("second")
    shutil.copytree(run, other)
    for monitor in other.rglob("monitor.csv"):
        lines = monitor.read_text().splitlines(keepends=True)
        monitor.write_text("".join(lines[:1 + len(lines) * 2 // 3]))
    return other


def setUpModule():
    global FOLDER, FILE, BROWSER
    FOLDER = tempfile.TemporaryDirectory(prefix="lockstep-report-")
    single = train(FOLDER.name, "single")
    cluster = train(FOLDER.name, "cluster", "--workers", "2", "--ps", "1", "--mode", "sync")
    FILE = pathlib.Path(FOLDER.name, "report.html")
    subprocess.run([WRITE_REPORT, FILE, single, cluster, shortened(cluster)], check=True)
    BROWSER = page.Browser(FOLDER.name)


def tearDownModule():
    BROWSER.close()
    FOLDER.cleanup()


class ReportTest(unittest.TestCase):
    def setUp(self):
        BROWSER.media()
        BROWSER.width(1280)
        BROWSER.requests()
        BROWSER.open(FILE.as_uri())
        self.browser = BROWSER

    def tearDown(self):
        self.assertEqual(self.browser.errors(), [])

    def specs(self):
        return json.loads(self.browser.script("return document.getElementById('charts').textContent"))

    def figure(self, ident):
        return self.browser.one(f"#{ident}.chart")

    def plot(self, ident):
        return self.browser.one(f"#{ident} svg.plot")

    def ticks(self, ident):
        return self.browser.script("return [...document.querySelectorAll(arguments[0])].map((text) => text.textContent)", f"#{ident} text.tick")

    def shown(self, ident):
        return self.browser.script("return [...document.querySelectorAll(arguments[0])].map((group) => group.dataset.series)", f"#{ident} svg.plot g.series")

    def save(self, ident, kind):
        menu = self.browser.one(f"#{ident} .chart-look")
        if not menu.get_attribute("open"):
            menu.find_element("css selector", "summary").click()
        self.browser.one(f"#{ident} [aria-label^='Save as {kind}']").click()

    def screenshot(self, name):
        if SCREENSHOTS:
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            self.browser.screenshot(SCREENSHOTS / f"report-{name}.png")

    def test_nothing_is_asked_of_a_network(self):
        self.assertEqual([url for url in self.browser.requests() if not url.startswith(("file:", "data:", "blob:"))], [])
        blocked = self.browser.driver.execute_async_script(
            "const done = arguments[0]; fetch('http://127.0.0.1:9/').then(() => done('went out'), () => done('refused'))")
        self.assertEqual(blocked, "refused")
        self.assertIn("Content Security Policy", " ".join(self.browser.errors()))

    def test_axes_of_times_begin_at_zero(self):
        timed = [spec["id"] for spec in self.specs() if spec["kind"] in ("line", "bar") and spec["y"]["unit"] == "s" and not spec["y"].get("log")]
        self.assertTrue(timed)
        for ident in timed:
            self.assertIn(True, [text.split()[0] == "0" for text in self.ticks(ident)], ident)

    def test_tables_have_names(self):
        nameless = self.browser.script("""return [...document.querySelectorAll(".scroll, table")].filter((one) =>
            !one.getAttribute("aria-label") && !document.getElementById(one.getAttribute("aria-labelledby"))).length""")
        self.assertEqual(nameless, 0)

    def test_every_plot_draws_all_its_series(self):
        specs = self.specs()
        self.assertEqual({spec["kind"] for spec in specs}, {"line", "bar", "stack", "timeline"})
        for spec in specs:
            names = list(dict.fromkeys(span["name"] for span in spec["spans"])) if spec["kind"] == "timeline" else [s["name"] for s in spec["series"]]
            self.assertGreater(len(names), 0, spec["id"])
            self.assertEqual(self.shown(spec["id"]), names, spec["id"])
            drawn = self.browser.script("return [...document.querySelectorAll(arguments[0])].every((group) => group.querySelector('path[d^=M], rect'))",
                                        f"#{spec['id']} svg.plot g.series")
            self.assertTrue(drawn, spec["id"])
            self.assertTrue(self.plot(spec["id"]).get_attribute("aria-label"))
        self.screenshot("light")

    def test_bars_have_the_heights_of_their_values(self):
        spec = next(spec for spec in self.specs() if spec["id"] == "plot-epoch-1")
        heights = self.browser.script("return [...document.querySelectorAll('#plot-epoch-1 svg.plot .bar')].map((bar) => bar.getBBox().height)")
        values = [y for series in spec["series"] for y in series["y"]]
        self.assertEqual(len(heights), len(values))
        scale = heights[0] / values[0]
        for height, value in zip(heights, values):
            self.assertAlmostEqual(height, value * scale, delta=1)

    def test_names_from_files_are_text(self):
        self.assertIn("<b>escaped</b>", self.browser.one("h1").text)
        self.assertEqual(self.browser.all("h1 b"), [])
        self.assertIn("<see its log>", self.browser.one("#runs").text)

    def test_hover_shows_the_values_of_all_series(self):
        self.browser.hover(self.plot("plot-two-axes-1"), 0.55, 0.5)
        tip = self.browser.one("#plot-two-axes-1 .chart-tip")
        self.assertTrue(tip.is_displayed())
        self.assertRegex(tip.text, r"batch size \d+")
        self.assertRegex(tip.text, r"test accuracy\s+9[78](\.\d+)? %")
        self.assertRegex(tip.text, r"time of an epoch\s+\d\.\d+ s")
        self.browser.hover(self.browser.one("h1"), 0.5, 0.5)
        self.assertFalse(tip.is_displayed())

    def test_arrow_keys_show_values_too(self):
        plot = self.plot("plot-two-axes-1")
        self.browser.script("arguments[0].focus()", plot)
        self.browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertIn("batch size 64", self.browser.one("#plot-two-axes-1 .chart-tip").text)

    def test_the_legend_hides_series(self):
        names = self.shown("plot-accuracy-1")
        button = self.browser.one("#plot-accuracy-1 .legend button")
        button.click()
        self.assertEqual(self.shown("plot-accuracy-1"), names[1:])
        self.assertEqual(self.browser.one("#plot-accuracy-1 .legend button").get_attribute("aria-pressed"), "false")
        self.browser.press(Keys.SPACE)  # the button has kept the focus
        self.assertEqual(self.shown("plot-accuracy-1"), names)

    def test_dragging_zooms_and_a_double_click_resets(self):
        before = self.ticks("plot-loss-1")
        self.browser.drag(self.plot("plot-loss-1"), 0.3, 0.5)
        zoomed = self.ticks("plot-loss-1")
        self.assertNotEqual(zoomed, before)
        self.assertTrue(self.browser.one("#plot-loss-1 .chart-buttons button").is_displayed())
        self.browser.double_click(self.plot("plot-loss-1"))
        self.assertEqual(self.ticks("plot-loss-1"), before)

    def test_the_data_is_there_as_a_table(self):
        self.browser.one("#plot-epoch-1 .chart-data summary").click()
        self.browser.wait(lambda: self.browser.all("#plot-epoch-1 .chart-data td"))
        rows = self.browser.all("#plot-epoch-1 .chart-data tbody tr")
        self.assertEqual(len(rows), 3)
        self.assertIn("17 s", rows[0].text)

    def test_another_repeat_can_be_chosen(self):
        spec = next(spec for spec in self.specs() if spec["id"] == "plot-cpu-2")
        self.assertEqual([choice["name"] for choice in spec["choices"]], ["repeat 2", "repeat 3"])

        def drawn():
            return self.browser.script("return [...document.querySelectorAll('#plot-cpu-2 svg.plot .line')].map((line) => line.getAttribute('d'))")

        first, ticks = drawn(), self.ticks("plot-cpu-2")
        select = self.browser.one("#plot-cpu-2 .chart-choice select")
        self.assertEqual(self.browser.script("return [...arguments[0].options].map((option) => option.text)", select), ["repeat 1", "repeat 2", "repeat 3"])
        self.browser.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'}); arguments[0].focus()", select)
        self.browser.press(Keys.ARROW_DOWN)
        self.browser.wait(lambda: drawn() != first)
        self.assertEqual([text for text in self.ticks("plot-cpu-2") if "%" in text], [text for text in ticks if "%" in text], "the same axis")
        self.assertIn("(repeat 2)", self.plot("plot-cpu-2").get_attribute("aria-label"))
        self.screenshot("repeat")
        self.save("plot-cpu-2", "SVG")
        self.assertIn(b"(repeat 2)", self.browser.saved("plot-cpu-2.svg"))
        self.browser.media("light", "print")
        self.assertFalse(select.is_displayed())
        self.assertEqual(self.browser.one("#plot-cpu-2 .chart-choice").text.split(), "Shown: repeat 2, one of 3".split())

    def test_the_repeat_of_a_timeline_can_be_chosen(self):
        def drawn():
            return self.browser.script("return [...document.querySelectorAll('#plot-timeline-1 svg.plot rect.bar')].map((bar) => bar.getAttribute('width'))")

        first = drawn()
        select = self.browser.one("#plot-timeline-1 .chart-choice select")
        self.browser.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'}); arguments[0].focus()", select)
        self.browser.press(Keys.ARROW_DOWN)
        self.browser.wait(lambda: drawn() != first)

    def test_charts_of_all_repeats_have_nothing_to_choose(self):
        self.assertFalse(self.browser.one("#plot-accuracy-1 .chart-choice").is_displayed())

    def test_charts_can_be_saved(self):
        self.save("plot-epoch-1", "SVG")
        drawing = xml.etree.ElementTree.fromstring(self.browser.saved("plot-epoch-1.svg"))
        self.assertEqual(drawing.tag, "{http://www.w3.org/2000/svg}svg")
        text = " ".join(drawing.itertext())
        self.assertIn("Time of an epoch", text)
        self.assertIn("all-reduce", text)
        fills = {element.get("style", "") for element in drawing.iter("{http://www.w3.org/2000/svg}path")}
        self.assertTrue(any("fill:rgb(0, 110, 205)" in style.replace("fill: ", "fill:") for style in fills), fills)
        self.save("plot-epoch-1", "PNG")
        picture = self.browser.saved("plot-epoch-1.png")
        self.assertEqual(picture[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", picture[16:24])
        self.assertGreater(width, 600)
        self.assertGreater(height, 400)

    def test_charts_are_saved_in_the_chosen_width_and_font(self):
        self.browser.script("lockstepSave.look.width = 340; lockstepSave.look.font = \"'Times New Roman', Times, serif\"")
        self.save("plot-accuracy-1", "SVG")
        drawing = xml.etree.ElementTree.fromstring(self.browser.saved("plot-accuracy-1.svg"))
        self.assertEqual(float(drawing.get("width")), 340)
        fonts = {element.get("style", "") for element in drawing.iter("{http://www.w3.org/2000/svg}text")}
        self.assertTrue(all("Times" in style for style in fonts), fonts)
        self.assertEqual(self.browser.all(".off-screen"), [])

    def test_a_chart_is_printed_alone_on_a_page_of_its_size(self):
        self.browser.script("lockstepSave.look.width = lockstepSave.look.font = ''")
        self.save("plot-accuracy-1", "PDF")
        inside = self.browser.wait(lambda: self.browser.script("return document.querySelector('.print-frame')?.contentDocument.documentElement.outerHTML"))
        self.assertRegex(inside, r"@page \{ size: \d+(\.\d+)?px \d+(\.\d+)?px")
        self.assertEqual(inside.count("<title>"), 2)
        self.browser.script("document.querySelector('.print-frame').remove()")

    def test_tables_can_be_saved(self):
        self.browser.one("#table-nodes [aria-label='Save as LaTeX']").click()
        self.assertIn(b"\\toprule", self.browser.saved("table-nodes.tex"))
        self.browser.one("#table-nodes [aria-label='Save as CSV']").click()
        self.assertIn("± test accuracy".encode(), self.browser.saved("table-nodes.csv").splitlines()[0])

    def test_losses_can_be_smoothed_and_logarithmic(self):
        def drawn():
            return self.browser.script("return document.querySelector('#plot-loss-1 svg.plot .line').getAttribute('d')")

        first = drawn()
        button = self.browser.one("#plot-loss-1 .chart-adjust button")
        self.assertEqual(button.get_attribute("aria-pressed"), "true", "as the plot says")
        button.click()
        linear = drawn()
        self.assertNotEqual(linear, first)
        slider = self.browser.one("#plot-loss-1 [aria-label=Smoothing]")
        self.browser.script("arguments[0].value = 0.9; arguments[0].dispatchEvent(new Event('input'))", slider)
        self.assertNotEqual(drawn(), linear)
        self.assertTrue(self.browser.all("#plot-loss-1 svg.plot .raw"), "the unsmoothed curve stays")

    def test_dark_and_light(self):
        def brightness(selector):
            color = self.browser.script("return getComputedStyle(document.querySelector(arguments[0])).backgroundColor", selector)
            return sum(map(int, color[4:-1].split(",")))

        self.assertGreater(brightness("body"), 600)
        self.browser.media("dark")
        self.assertLess(brightness("body"), 150)
        self.screenshot("dark")
        self.browser.one("#theme").click()
        self.assertGreater(brightness("body"), 600)
        self.browser.one("#theme").click()
        self.assertLess(brightness("body"), 150)
        self.browser.script("localStorage.clear()")

    def test_it_looks_right_in_all_widths_and_modes(self):
        self.assertEqual(looks.all_faults(self.browser, FILE.as_uri()), [])

    def test_a_plan_looks_right_in_all_widths_and_modes(self):
        plan = FILE.with_name("plan.html")
        subprocess.run([LOCKSTEP, "plan", FILE.with_name("single-3"), "--nodes", "1,2,4,8", "--rate", "1gbit,10gbit", "--out", plan],
                       check=True, capture_output=True)
        self.assertEqual(looks.all_faults(self.browser, plan.as_uri()), [])

    def test_charts_follow_the_width_of_the_window(self):
        before = self.plot("plot-accuracy-1").get_dom_attribute("viewBox")
        self.browser.width(700)
        self.browser.wait(lambda: self.plot("plot-accuracy-1").get_dom_attribute("viewBox") != before)

    def test_prints_in_light_colours_without_controls(self):
        self.browser.media("dark", "print")
        self.browser.width(794)  # A4
        self.assertLessEqual(self.browser.overflow(), 0)
        self.assertFalse(self.browser.one("#theme").is_displayed())
        self.assertFalse(self.browser.one(".chart-buttons").is_displayed())
        color = self.browser.script("return getComputedStyle(document.body).backgroundColor")
        self.assertEqual(color, "rgb(255, 255, 255)")
        pdf = self.browser.pdf()
        self.assertTrue(pdf.startswith(b"%PDF"))
        if SCREENSHOTS:
            (SCREENSHOTS / "report.pdf").write_bytes(pdf)

    def test_contents_lead_to_every_section(self):
        links = [link.get_attribute("href").split("#")[1] for link in self.browser.all("aside nav a")]
        self.assertGreater(len(links), 10)
        for link in links:
            self.assertTrue(self.browser.all(f"[id='{link}']"), link)

    def test_gone_folders_are_said_to_be_gone(self):
        self.assertIn("is gone", self.browser.one("#plot-nothing").text)
        self.assertIn("does not hold", self.browser.one("#findings").text)
        self.assertIn("not judged", self.browser.one("#findings").text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
