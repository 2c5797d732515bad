"""Lines of a driver's log: as text, or as one JSON object per line.

An object has ``timestamp`` (ISO 8601, UTC), ``level``, ``logger``, ``message``, ``pipeline``, ``n``
(the batch id), ``stage`` and ``exception``; the last four are null if there is none. ``event`` says
what the line is about. Errors also have ``remedy`` and ``exit_code``, batches ``rows``,
``seconds``, ``backlog`` and ``trouble``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from headgate.supervision.words import STAGE

LogFormat = Literal["text", "json"]
Event = Literal["start", "stage", "batch", "outage", "output", "error", "log"]
OPTION = "--log-format"
VARIABLE = "HEADGATE_LOG_FORMAT"


def format_of(options: Sequence[str], environment: Mapping[str, str]) -> LogFormat:
    """The format in which a driver with these options will log."""
    asked = environment.get(VARIABLE, "")
    if OPTION in options[:-1]:
        asked = options[options.index(OPTION) + 1]
    return "json" if asked == "json" else "text"


def options_of(format: LogFormat, environment: Mapping[str, str]) -> list[str]:
    """The options of a driver that logs in a format."""
    return [] if format == format_of((), environment) else [OPTION, format]


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


def as_text(line: str) -> str:
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
        return f"{STAGE}{message}"
    if event == "error":
        return "\n".join(filter(None, (message, found.get("remedy"))))
    if event == "log":
        head = f"{found['timestamp']} {found['level']} {found['logger']} {message}"
        return "\n".join(filter(None, (head, found["exception"])))
    return message
