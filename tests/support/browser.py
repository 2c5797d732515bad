"""A real browser, without a window: what a page is when its scripts have run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
is_there = PROGRAM is not None


def dom_of(address: str, profile: Path, seconds: float = 10.0) -> str:
    """The document at an address, after so many seconds of its own time."""
    assert PROGRAM is not None
    flags = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *(f"--user-data-dir={profile}", f"--virtual-time-budget={seconds * 1000:.0f}"),
    )
    done = subprocess.run(
        [PROGRAM, *flags, "--dump-dom", address],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout
