"""The log of a driver: its lines, its files, tail and follow.

A line is text, or one JSON object. An object has ``timestamp`` (ISO 8601, UTC), ``level``,
``logger``, ``message``, ``pipeline``, ``n`` (the batch id), ``stage`` and ``exception``; the last
four are null if there is none. ``event`` says what the line is about. Errors also have ``remedy``
and ``exit_code``, batches ``rows``, ``seconds``, ``backlog`` and ``trouble``.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headgate.supervision.progress_text import STAGE_PREFIX

if TYPE_CHECKING:
    from headgate.lake.storage.layout import Layout

LogFormat = Literal["text", "json"]
Event = Literal["start", "stage", "batch", "outage", "output", "error", "log"]
FORMAT_OPTION = "--log-format"
FORMAT_VARIABLE = "HEADGATE_LOG_FORMAT"


def format_of(options: Sequence[str], environment: Mapping[str, str]) -> LogFormat:
    """The format in which a driver with these options will log."""
    asked = environment.get(FORMAT_VARIABLE, "")
    if FORMAT_OPTION in options[:-1]:
        asked = options[options.index(FORMAT_OPTION) + 1]
    return "json" if asked == "json" else "text"


def options_of(format: LogFormat, environment: Mapping[str, str]) -> list[str]:
    """The options of a driver that logs in a format."""
    return [] if format == format_of((), environment) else [FORMAT_OPTION, format]


def json_line(
    event: Event,
    message: str,
    now: datetime,
    *,
    level: str = "INFO",
    logger: str = "headgate",
    pipeline: str | None = None,
    n: int | None = None,
    stage: str | None = None,
    exception: str | None = None,
    **more: Any,
) -> str:
    """One line without its end."""
    content = {
        "timestamp": now.isoformat(timespec="milliseconds"),
        "level": level,
        "logger": logger,
        "event": event,
        "message": message,
        "pipeline": pipeline,
        "n": n,
        "stage": stage,
        "exception": exception,
        **more,
    }
    return json.dumps(content, ensure_ascii=False, default=str)


def start_line(now: datetime, format: LogFormat, pipeline: str) -> str:
    """The line that separates the output of a driver from that of the previous driver."""
    if format == "json":
        return json_line("start", "start", now, pipeline=pipeline)
    return f"--- {now:%F %T}Z start"


def line_as_text(line: str) -> str:
    """A line as readable text, in one line or several. Lines of other programs are unchanged."""
    if not line.startswith("{"):
        return line
    try:
        return _text(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError):
        return line


def _text(found: Mapping[str, Any]) -> str:
    event, message = found["event"], str(found["message"])
    if event == "start":
        return f"--- {datetime.fromisoformat(found['timestamp']):%F %T}Z start"
    if event == "stage":
        return f"{STAGE_PREFIX}{message}"
    if event == "error":
        return "\n".join(filter(None, (message, found.get("remedy"))))
    if event == "log":
        head = f"{found['timestamp']} {found['level']} {found['logger']} {message}"
        return "\n".join(filter(None, (head, found["exception"])))
    return message


def logs_folder(layout: Layout) -> Path:
    """The folder of a pipeline's logs, beside its tables."""
    # Imported here because every command formats lines, and few need documents and tables.
    from headgate.lake.storage.layout import CONTROL

    return Path(layout.storage.uri(CONTROL)) / "logs"


def run_log(layout: Layout) -> Path:
    """The log of a driver that ``headgate start`` has started."""
    return logs_folder(layout) / "run.log"


def spark_log(layout: Layout, job: str) -> Path:
    """The log of Spark and its libraries in ``job``: fused, or a layer."""
    return logs_folder(layout) / f"spark-{job}.log"


def newest_spark_log(layout: Layout) -> Path | None:
    """The Spark log that was written last."""
    logs = sorted(logs_folder(layout).glob("spark-*.log"), key=lambda p: p.stat().st_mtime)
    return logs[-1] if logs else None


def tail_log(path: Path, lines: int) -> list[str]:
    """The last lines of a log as text; empty if the log does not exist."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", errors="replace") as log:
        last = (line_as_text(line.rstrip("\n")) for line in deque(log, maxlen=lines))
        return [line for text in last for line in text.split("\n")]


def follow_log(path: Path, wait: Callable[[float], None] = time.sleep) -> Iterator[str]:
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
                yield line_as_text(held[:-1])
                held = ""
            else:
                wait(0.25)
