"""A real browser, without a window, told what to do over its DevTools protocol."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
is_there = PROGRAM is not None
_ANSWERS_WITHIN = 60.0  # seconds
_NAVIGATED = "Inspected target navigated or closed"


class NavigatedError(Exception):
    """The page was left while it was asked; the next one may answer."""


class Page:
    """An open page. ``faults`` are the errors that its scripts did not catch."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._asked = 0
        self.faults: list[str] = []
        self._ask("Runtime.enable")

    def run(self, script: str) -> Any:
        """The value of an expression in the page, or of the promise that it is. Raises
        NavigatedError."""
        about = {"expression": script, "awaitPromise": True, "returnByValue": True}
        found = self._ask("Runtime.evaluate", about)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def goes_to(self, address: str) -> None:
        self._ask("Page.navigate", {"url": address})

    def _ask(self, method: str, about: dict[str, Any] | None = None) -> dict[str, Any]:
        self._asked += 1
        order = {"id": self._asked, "method": method, "params": about or {}}
        self._connection.send(json.dumps(order))
        while True:
            told = json.loads(self._connection.recv(_ANSWERS_WITHIN))
            if told.get("method") == "Runtime.exceptionThrown":
                self.faults.append(json.dumps(told["params"]["exceptionDetails"]))
            if told.get("id") == self._asked:
                if told.get("error", {}).get("message") == _NAVIGATED:
                    raise NavigatedError
                assert "error" not in told, told
                result: dict[str, Any] = told["result"]
                return result


@contextmanager
def opened(address: str, profile: Path) -> Iterator[Page]:
    assert PROGRAM is not None
    flags = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *(f"--user-data-dir={profile}", "--remote-debugging-port=0"),
    )
    profile.mkdir(parents=True, exist_ok=True)
    with (profile / "said.log").open("wb") as said:
        browser = subprocess.Popen(
            [PROGRAM, *flags, "about:blank"], stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
    try:
        with connect(_page_of(browser, profile), max_size=None, proxy=None) as connection:
            page = Page(connection)
            page.goes_to(address)
            yield page
    finally:
        browser.terminate()
        browser.wait(_ANSWERS_WITHIN)


def _page_of(browser: subprocess.Popen[bytes], profile: Path) -> str:
    """Where the one page of a browser that has just been started is talked to."""
    told, until = profile / "DevToolsActivePort", time.monotonic() + _ANSWERS_WITHIN
    while not (told.exists() and told.read_text().count("\n")):
        said = (profile / "said.log").read_text(errors="replace")
        assert browser.poll() is None, said
        assert time.monotonic() < until, said
        time.sleep(0.1)
    port = told.read_text().splitlines()[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
        pages = [page for page in json.load(answer) if page["type"] == "page"]
    return str(pages[0]["webSocketDebuggerUrl"])
