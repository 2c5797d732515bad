"""The log files of a pipeline: paths, tail and follow."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from headgate.lake.storage.layout import CONTROL, Layout
from headgate.supervision.log_lines import as_text


def log_folder(layout: Layout) -> Path:
    """The folder of a pipeline's logs, beside its tables."""
    return Path(layout.storage.uri(CONTROL)) / "logs"


def run_log(layout: Layout) -> Path:
    """The log of a driver that ``headgate start`` has started."""
    return log_folder(layout) / "run.log"


def spark_log(layout: Layout, job: str) -> Path:
    """The log of Spark and its libraries in ``job``: fused, or a layer."""
    return log_folder(layout) / f"spark-{job}.log"


def newest_spark_log(layout: Layout) -> Path | None:
    """The Spark log that was written last."""
    logs = sorted(log_folder(layout).glob("spark-*.log"), key=lambda p: p.stat().st_mtime)
    return logs[-1] if logs else None


def tail(path: Path, lines: int) -> list[str]:
    """The last lines of a log as text; empty if the log does not exist."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", errors="replace") as log:
        last = (as_text(line.rstrip("\n")) for line in deque(log, maxlen=lines))
        return [line for text in last for line in text.split("\n")]


def follow(path: Path, wait: Callable[[float], None] = time.sleep) -> Iterator[str]:
    """Every line that is added from now on, without end; ``wait`` is called if there is none."""
    while not path.exists():
        wait(0.5)
    with path.open(encoding="utf-8", errors="replace") as log:
        log.seek(0, 2)
        held = ""
        while True:
            if path.stat().st_size < log.tell():
                log.seek(0)  # the log was rotated
            held += log.readline()
            if held.endswith("\n"):
                yield as_text(held[:-1])
                held = ""
            else:
                wait(0.25)
