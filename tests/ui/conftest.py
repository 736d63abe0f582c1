"""One browser for a module of tests, and a page in it that is asked what a reader would see."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from . import pages

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
SWITCHES = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --lang=en-US"
)


class Page:
    """The lineage page in the browser, with the keyboard, the mouse and the eyes of a reader."""

    def __init__(self, browser: webdriver.Chrome, folder: Path, artefacts: Path) -> None:
        self.browser = browser
        self.folder = folder
        self.artefacts = artefacts

    def resize(self, width: int, height: int = 800) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, **features: str) -> None:
        """What the reader's system asks for: `prefer(color_scheme="dark")`."""
        wanted = [{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in features.items()]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
        self.settle()

    def open(self, data: object, hash: str = "") -> Path:
        path = pages.write(self.folder, data)
        self.visit(path.as_uri() + hash)
        return path

    def visit(self, address: str) -> None:
        self.browser.get("about:blank")  # or a new hash would not load the page anew
        self.browser.get(address)
        self.settle()

    def settle(self) -> None:
        """Waits until what was done is drawn."""
        self.browser.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))"
        )

    def js(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    # Each looks at the page once: between two looks it may be drawn anew, and what the first one found is gone.

    def shown(self, css: str) -> list[WebElement]:
        script = "return [...document.querySelectorAll(arguments[0])].filter((e) => e.getClientRects().length)"
        return self.js(script, css)

    def find(self, css: str, text: str = "") -> WebElement:
        """The first that is shown and has the text."""
        script = """
            return [...document.querySelectorAll(arguments[0])]
              .find((e) => e.getClientRects().length && e.textContent.includes(arguments[1]));
        """
        found = self.js(script, css, text)
        assert found is not None, f"no {css} with {text!r} in sight"
        return found

    def click(self, css: str, text: str = "") -> None:
        self.settle()
        ActionChains(self.browser).move_to_element(self.find(css, text)).click().perform()
        self.settle()

    def hover(self, css: str, text: str = "") -> None:
        ActionChains(self.browser).move_to_element(self.find(css, text)).perform()
        self.settle()

    def text(self, css: str) -> str:
        return self.texts(css)[0]

    def texts(self, css: str) -> list[str]:
        """Of all that are shown, part by part: `● @11 current`."""
        script = """
            const shown = (e) => e.nodeType === Node.TEXT_NODE || e.getClientRects().length;
            const parts = (e) => (e.data !== undefined ? [e.data] : [...e.childNodes].filter(shown).flatMap(parts));
            return [...document.querySelectorAll(arguments[0])].filter(shown)
              .map((e) => parts(e).join(" ").replace(/\\s+/g, " ").trim());
        """
        return self.js(script, css)

    def keys(self, *keys: str) -> None:
        ActionChains(self.browser).send_keys(*keys).perform()
        self.settle()

    def focused(self) -> str:
        return self.js("const e = document.activeElement; return e.id || e.getAttribute('class') || e.localName")

    def models(self) -> list[str]:
        script = "return [...document.querySelectorAll('#model-list .name')]"
        return self.js(f"{script}.filter((e) => e.getClientRects().length).map((e) => e.title)")

    def log(self) -> list[str]:
        return self.texts("#log-list .id")

    def until(self, script: str, expected: object) -> None:
        WebDriverWait(self.browser, 5, 0.02).until(
            lambda _: self.js(f"return {script}") == expected,
            f"{script} never became {expected!r}, it is {self.js(f'return {script}')!r}",
        )

    @contextmanager
    def before_each_load(self, script: str) -> Iterator[None]:
        """Runs a script in each page that is loaded in the block, before those of the page."""
        added = self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        try:
            yield
        finally:
            self.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)

    def requests(self) -> list[str]:
        """The addresses that were asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def photograph(self, name: str) -> None:
        self.artefacts.mkdir(parents=True, exist_ok=True)
        assert self.browser.save_screenshot(str(self.artefacts / f"lineage-{name}.png"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    missing = [str(program) for program in (CHROMIUM, DRIVER) if not shutil.which(str(program))]
    if missing:
        pytest.fail(
            f"{' and '.join(missing)} not found: the tests of the lineage page need Chromium and its driver,"
            " install them with `apt-get install chromium chromium-driver`",
            pytrace=False,
        )
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for switch in [*SWITCHES.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    chromium = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    yield chromium
    chromium.quit()


@pytest.fixture
def page(browser: webdriver.Chrome, tmp_path: Path) -> Iterator[Page]:
    """At 1280 x 800 in light, with nothing remembered; and no test may leave an error in the console."""
    page = Page(browser, tmp_path, Path(os.environ.get("UI_ARTEFACTS") or tmp_path))
    page.resize(1280)
    page.prefer(color_scheme="light")
    browser.get_log("browser")
    # What Chromium remembers for pages from files may come late, or not at all.
    with page.before_each_load("try { localStorage.clear() } catch { /* some tests take it away */ }"):
        yield page
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
