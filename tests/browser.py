"""A real browser for tests of pages: Chromium, driven by Playwright, which sees what a page asks for and complains of.

`make browser` installs Debian's Chromium. Names are not resolved in it, so no request can leave the machine.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from faults.needs import missing

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
_NAMES = ("chromium", "chromium-browser", "google-chrome")
# In a container the sandbox lacks its namespaces. The pages under test are our own.
_ARGUMENTS = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium, or skip the test; in CI a missing one is a failure.

    While it runs, its thread has a running event loop: use it in fixtures of a test or a module only.
    """
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        missing("Chromium is not installed; `make browser` installs it")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Tab:
    """One page of a server: its requests to other hosts, and the errors and warnings of its console."""

    page: Page
    url: str
    foreign: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        self.page.goto(self.url + path)

    def check(self) -> None:
        """Check that nothing left the server and nothing went wrong."""
        assert self.foreign == []
        assert self.complaints == []

    def contrast(self) -> dict[str, float]:
        """The lowest contrast of visible text with its ground, by element and class."""
        found: dict[str, float] = self.page.evaluate(_CONTRAST)
        return found

    def overflow(self) -> int:
        """The pixels by which the page is wider than the window."""
        found: int = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        return found

    def picture(self, name: str) -> None:
        """Save a picture to the folder `HOLDFAST_SCREENSHOTS`, if it is named, for people to look at."""
        if folder := os.environ.get("HOLDFAST_SCREENSHOTS"):
            self.page.screenshot(path=Path(folder) / f"{name}.png")


@contextmanager
def tab(browser: Browser, url: str, theme: Theme = "light", width: int = 1280, **options: Any) -> Iterator[Tab]:
    """Open a tab without cookies or cache, and check at its end that nothing went wrong."""
    with browser.new_context(color_scheme=theme, viewport={"width": width, "height": 900}, **options) as context:
        opened = Tab(context.new_page(), url)
        own = urlsplit(url).netloc

        def note(asked: str) -> None:
            parts = urlsplit(asked)
            if parts.scheme != "data" and parts.netloc != own:
                opened.foreign.append(asked)

        def complain(kind: str, text: str) -> None:
            if kind in ("error", "warning"):
                opened.complaints.append(f"{kind}: {text}")

        context.on("request", lambda request: note(request.url))
        context.on("requestfailed", lambda request: complain("error", f"{request.url}: {request.failure}"))
        opened.page.on("console", lambda message: complain(message.type, message.text))
        opened.page.on("pageerror", lambda error: complain("error", str(error)))
        yield opened
        opened.check()


# The formula is that of WCAG 2.
_CONTRAST = """() => {
  const light = ([r, g, b]) => [r, g, b]
    .map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const ground = element => {
    for (let each = element; each; each = each.parentElement) {
      const color = parse(getComputedStyle(each).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const lowest = {};
  for (const element of document.body.querySelectorAll('*')) {
    const hasText = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!hasText || !element.checkVisibility()) continue;
    const [one, other] = [light(parse(getComputedStyle(element).color)), light(ground(element).slice(0, 3))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const name = `${element.tagName.toLowerCase()}.${element.className}`;
    lowest[name] = Math.min(lowest[name] ?? 21, ratio);
  }
  return lowest;
}"""
