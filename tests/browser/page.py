"""Pages in headless Chromium: a browser without network that fails on console errors, and helpers to point at
elements."""

import base64
import json
import pathlib
import shutil
import sys
import time

if not pathlib.Path(sys.prefix, "stamp").exists():
    print("skipped: the virtual environment could not be filled (prepare_venv.py says why)")
    sys.exit(77)

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not (CHROMIUM and DRIVER):
    print("skipped: chromium and chromium-driver are not installed")
    sys.exit(77)

PATIENCE = 120
PHONE = 390


class Browser:
    """A separate Chromium, which saves files to `downloads`."""

    def __init__(self, downloads, width=1280, height=900):
        self.downloads = pathlib.Path(downloads)
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-proxy-server",
                         f"--window-size={width},{height}"):
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"download.default_directory": str(self.downloads),
                                                  "download.prompt_for_download": False})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        self.driver.set_page_load_timeout(PATIENCE)
        self.driver.set_script_timeout(PATIENCE)

    def close(self):
        self.driver.quit()

    def open(self, url):
        self.driver.get(url)

    def errors(self):
        """Returns the console's warnings and errors since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """Returns the addresses requested since the last call."""
        messages = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def width(self, pixels, height=900, mobile=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": mobile})

    def media(self, scheme="light", kind=""):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"media": kind, "features": [{"name": "prefers-color-scheme", "value": scheme},
                                                                 {"name": "prefers-reduced-motion", "value": "reduce"}]})

    def overflow(self):
        """Returns by how much the page is wider than the window."""
        return self.script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def hover(self, element, x, y):
        """Points at a place of an element, given as shares of its size."""
        self.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        ActionChains(self.driver, duration=0).move_to_element_with_offset(element, *self._place(element, x, y)).perform()

    def drag(self, element, start, end, y=0.5):
        self.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        (ActionChains(self.driver, duration=20).move_to_element_with_offset(element, *self._place(element, start, y)).click_and_hold()
         .move_to_element_with_offset(element, *self._place(element, (start + end) / 2, y))
         .move_to_element_with_offset(element, *self._place(element, end, y)).release().perform())

    def double_click(self, element):
        ActionChains(self.driver, duration=0).move_to_element(element).double_click().perform()

    def press(self, *keys):
        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def saved(self, name):
        """Returns the bytes of a file that the page saves, once it is complete."""
        path = self.downloads / name
        self.wait(lambda: path.exists() and path.stat().st_size > 0)
        return path.read_bytes()

    def wait(self, ready):
        deadline = time.monotonic() + PATIENCE
        while not (result := ready()):
            assert time.monotonic() < deadline, "nothing came of it"
            time.sleep(0.05)
        return result

    def screenshot(self, path, most=20000):
        """Captures the whole page."""
        size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], most), "scale": 1}
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        pathlib.Path(path).write_bytes(base64.b64decode(picture["data"]))

    def pdf(self):
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])

    @staticmethod
    def _place(element, x, y):
        size = element.rect
        return round((x - 0.5) * size["width"]), round((y - 0.5) * size["height"])
