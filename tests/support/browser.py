"""A real headless browser, controlled over its DevTools protocol."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
is_there = PROGRAM is not None
_ANSWERS_WITHIN = 60.0  # seconds
_CODES = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36}
_CODES |= {"ArrowLeft": 37, "ArrowRight": 39}
_NAVIGATED = "Inspected target navigated or closed"


class NavigatedError(Exception):
    """The page was left during a request; the next page may answer."""


class Page:
    """An open page. ``faults`` are the exceptions that its scripts did not catch, ``errors`` the
    errors in the browser's console, and ``requested`` the addresses that it has requested."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._asked = 0
        self.faults: list[str] = []
        self.errors: list[str] = []
        self.requested: list[str] = []
        for domain in ("Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is awaited. Raises NavigatedError."""
        about = {"expression": script, "awaitPromise": True, "returnByValue": True}
        found = self._ask("Runtime.evaluate", about)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def goes_to(self, address: str) -> None:
        self._ask("Page.navigate", {"url": address})

    def resize(self, width: int, height: int = 900) -> None:
        about = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", about)

    def prefers(self, scheme: str) -> None:
        """Set the theme of the system: ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._ask("Emulation.setEmulatedMedia", {"features": features})

    def click(self, x: float, y: float) -> None:
        """Click with the mouse at a place of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            about = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
            self._ask("Input.dispatchMouseEvent", about)

    def press(self, key: str) -> None:
        """Press a key such as ``Tab`` or ``ArrowLeft``."""
        for kind in ("rawKeyDown", "keyUp"):
            about = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": _CODES[key]}
            self._ask("Input.dispatchKeyEvent", about)

    def screenshot(self, file: Path, *, whole: bool = True) -> None:
        about = {"format": "png", "captureBeyondViewport": whole}
        file.write_bytes(b64decode(self._ask("Page.captureScreenshot", about)["data"]))

    def _ask(self, method: str, about: dict[str, Any] | None = None) -> dict[str, Any]:
        self._asked += 1
        order = {"id": self._asked, "method": method, "params": about or {}}
        self._connection.send(json.dumps(order))
        while True:
            told = json.loads(self._connection.recv(_ANSWERS_WITHIN))
            self._hear(told.get("method"), told.get("params", {}))
            if told.get("id") == self._asked:
                if told.get("error", {}).get("message") == _NAVIGATED:
                    raise NavigatedError
                assert "error" not in told, told
                result: dict[str, Any] = told["result"]
                return result

    def _hear(self, event: str | None, about: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            self.faults.append(json.dumps(about["exceptionDetails"]))
        elif event == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(json.dumps(about["entry"]))
        elif event == "Runtime.consoleAPICalled" and about["type"] in ("error", "assert"):
            self.errors.append(json.dumps(about["args"]))
        elif event == "Network.requestWillBeSent":
            self.requested.append(about["request"]["url"])


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
        with _connected(_page_of(browser, profile)) as connection:
            page = Page(connection)
            page.goes_to(address)
            yield page
    finally:
        browser.terminate()
        browser.wait(_ANSWERS_WITHIN)


def _connected(address: str) -> ClientConnection:
    """A slow browser is not given up before its answers are."""
    return connect(
        address, open_timeout=_ANSWERS_WITHIN, ping_interval=None, max_size=None, proxy=None
    )


def _page_of(browser: subprocess.Popen[bytes], profile: Path) -> str:
    """The DevTools address of the only page of a browser that has just been started."""
    told, until = profile / "DevToolsActivePort", time.monotonic() + _ANSWERS_WITHIN
    while not (pages := _pages(told)):
        said = (profile / "said.log").read_text(errors="replace")
        assert browser.poll() is None, said
        assert time.monotonic() < until, said
        time.sleep(0.1)
    return str(pages[0]["webSocketDebuggerUrl"])


def _pages(told: Path) -> list[dict[str, Any]]:
    """The pages of a browser that writes its port to the file ``told``."""
    if not (told.exists() and told.read_text().count("\n")):
        return []
    port = told.read_text().splitlines()[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
        return [page for page in json.load(answer) if page["type"] == "page"]
