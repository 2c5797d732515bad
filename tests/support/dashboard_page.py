"""The dashboard in a real browser."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support import browser
from tests.support.browser import NavigatedError, Page
from tests.support.charted import Charted
from tests.support.served import Served, served

WITHIN = 60.0  # seconds until a condition holds


class DashboardPage:
    """The dashboard ``site`` in the open browser page ``page``."""

    def __init__(self, page: Page, site: Served) -> None:
        self.page, self._site = page, site

    def log_in(self) -> None:
        self._go_to("/login")
        self.wait("document.getElementById('password')")
        form = json.dumps(self._site.password)
        self.page.run(f"document.getElementById('password').value = {form}")
        with suppress(NavigatedError):
            self.page.run("document.querySelector('form button').click()")
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def open(self, path: str) -> None:
        """Open a path. Returns when the page has drawn its content."""
        self._go_to(path)
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def _go_to(self, path: str) -> None:
        with suppress(NavigatedError):
            self.page.run("window.isOld = true")
        self.page.goes_to(f"{self._site.address}{path}")
        self.wait("!window.isOld")

    def wait(self, condition: str, within: float = WITHIN) -> float:
        """Wait until a condition holds. Returns the seconds that this took."""
        began = time.monotonic()
        while True:
            with suppress(NavigatedError):
                if self.page.run(f"Boolean({condition})"):
                    return time.monotonic() - began
            if time.monotonic() - began > within:
                shown = self.page.run("document.body?.innerText ?? ''")
                raise AssertionError(f"not within {within} s: {condition}\n{shown}")
            time.sleep(0.02)

    def text(self, selector: str) -> list[str]:
        """The text of every element that ``selector`` selects, in order."""
        script = "[...document.querySelectorAll(%s)].map((each) => each.innerText)"
        found: list[str] = self.page.run(script % json.dumps(selector))
        return found

    def run(self, script: str) -> Any:
        return self.page.run(script)

    def column(self, name: str) -> list[str]:
        """The cells of a column of the table of rows."""
        columns = [each.rstrip(" ↓↑") for each in self.text("thead th")]
        place = columns.index(name) + 1
        return self.text(f"tbody tr td:nth-child({place})")

    def is_clean(self, folder: Path) -> None:
        """Check that there is no error, that nothing was loaded from elsewhere, and that nothing is
        wider than the screen."""
        here = self._site.address
        elsewhere = [
            address
            for address in self.page.requested
            if not address.startswith((f"{here}/", "data:", "about:", "blob:"))
        ]
        assert (self.page.faults, self.page.errors, elsewhere) == ([], [], [])
        root = "document.documentElement"
        assert self.run(f"{root}.scrollWidth <= {root}.clientWidth"), self._picture(folder)

    def _picture(self, folder: Path) -> Path:
        file = folder / "page.png"
        self.page.screenshot(file)
        return file


@contextmanager
def logged_in(shop: Charted, folder: Path) -> Iterator[DashboardPage]:
    """A page of the dashboard of a pipeline, after the login. ``folder`` is for the browser."""
    with (
        served(shop.file, shop.root) as site,
        browser.opened("about:blank", folder / "profile") as opened,
    ):
        shown = DashboardPage(opened, site)
        shown.log_in()
        yield shown
