"""What the guard starts, with processes that touch files."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from headgate.standalone import family, guard
from headgate.standalone.guard import Guard
from tests.support.waiting import wait_until


def touches(file: Path, after: Path | None = None) -> tuple[str, ...]:
    """A process that makes ``file``, and before that waits for ``after``."""
    code = "import pathlib, sys, time\n"
    if after is not None:
        code += f"while not pathlib.Path({str(after)!r}).exists(): time.sleep(0.02)\n"
    return (sys.executable, "-c", f"{code}open({str(file)!r}, 'a').write('x')")


def test_what_runs_beside_does_not_wait_for_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "AGAIN_AFTER", 0.0)
    monkeypatch.setattr(guard, "_POLL", 0.02)
    monkeypatch.setattr(family, "members", lambda *_: [])
    (tmp_path / guard.LOGS).mkdir()
    fed, driven, migrated, served = (tmp_path / n for n in ("fed", "driven", "migrated", "served"))
    order = {
        "home": str(tmp_path),
        "environment": dict(os.environ),
        "work": str(tmp_path),
        # Only where both run already is the database made.
        "prepare": touches(migrated, after=driven),
        "components": {"server": touches(served), "producer": touches(fed)},
        "beside": ["producer"],
        "once": {"driver": touches(driven, after=fed)},
        "tell": {},
    }
    runs = Guard(order)
    thread = threading.Thread(target=runs.serve)
    thread.start()
    try:
        wait_until(lambda: served.exists() and len(served.read_text()) > 1, "served again", 60)
        assert migrated.exists()
        assert driven.read_text() == "x"
    finally:
        runs.end()
        thread.join(20)
    for process in runs.running.values():
        process.wait(20)
