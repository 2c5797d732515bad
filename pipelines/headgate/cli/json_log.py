"""The log of a driver as one JSON object a line (``run --log-format json``).

Everything that a run prints becomes such lines, whatever code prints it.
"""

from __future__ import annotations

import io
import logging
import re
import sys
import threading
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from headgate.cli.hidden import shown
from headgate.supervision.logs import Event, LogFormat, json_line
from headgate.supervision.progress_text import STAGE_PREFIX

if TYPE_CHECKING:
    from headgate.driver.progress import JobProgress

_OF_BATCH = re.compile(r"(?:source (\w+): )?batch (\d+): (.*)")


class JsonLog:
    """The pipeline, batch id and stage of the run, which each line repeats, and the source of the
    batch if there are several."""

    def __init__(self, pipeline: str) -> None:
        self.pipeline = pipeline
        self.n: int | None = None
        self.stage: str | None = None
        self.source: str | None = None

    def line(self, event: Event, message: str, **more: Any) -> str:
        now = datetime.now(UTC)
        known: dict[str, Any] = {"pipeline": self.pipeline, "n": self.n, "stage": self.stage}
        if self.source is not None:
            known["source"] = self.source
        return json_line(event, message, now, **known | more) + "\n"

    def printed(self, text: str) -> str:
        """The JSON line for a printed line."""
        if not text.startswith(STAGE_PREFIX):
            return self.line("output", text)
        message = text.removeprefix(STAGE_PREFIX)
        if of_batch := _OF_BATCH.search(message):
            self.source, self.n, self.stage = of_batch[1], int(of_batch[2]), of_batch[3]
        else:
            self.stage = message
        return self.line("stage", message)

    def batch(self, progress: JobProgress, text: str) -> str:
        sources = {
            name: {"n": each.n, "backlog": None if each.backlog is None else each.backlog.count}
            for name, each in progress.sources.items()
        }
        only = next(iter(sources.values())) if len(sources) == 1 else None
        self.n = only["n"] if only else None
        self.source = self.stage = None
        return self.line(
            *("batch", text),
            level="INFO" if progress.trouble is None else "WARNING",
            rows=progress.rows,
            seconds=progress.seconds,
            **({"backlog": only["backlog"]} if only else {"sources": sources}),
            trouble=progress.trouble,
        )

    def error(self, message: str, remedy: str, code: int) -> str:
        """The JSON line for the exception that is being handled."""
        return self.line(
            *("error", message),
            level="ERROR",
            remedy=remedy,
            exit_code=code,
            exception=shown(traceback.format_exc()),
        )


class JsonStream(io.TextIOBase):
    """Writes each line as an object to ``inner``. Threads may share it."""

    def __init__(self, inner: TextIO, log: JsonLog) -> None:
        self.inner, self._log = inner, log
        # `print` writes text and line feed separately: each thread keeps the part that it has.
        self._of_thread = threading.local()

    def write(self, text: str) -> int:
        begun = getattr(self._of_thread, "begun", "")
        *lines, self._of_thread.begun = (begun + text).split("\n")
        for line in lines:
            if line.strip():
                self.inner.write(self._log.printed(line.rstrip()))
        return len(text)

    def put(self, line: str) -> None:
        """Write a line that is a JSON object already."""
        self.inner.write(line)
        self.inner.flush()

    def flush(self) -> None:
        self.inner.flush()

    def fileno(self) -> int:
        return self.inner.fileno()

    def isatty(self) -> bool:
        return False


class JsonFormatter(logging.Formatter):
    """Formats log records of libraries as JSON lines."""

    def __init__(self, log: JsonLog) -> None:
        super().__init__()
        self._log = log

    def format(self, record: logging.LogRecord) -> str:
        exception = self.formatException(record.exc_info) if record.exc_info else None
        level, logger = record.levelname, record.name
        return self._log.line(
            "log", record.getMessage(), level=level, logger=logger, exception=exception
        ).rstrip("\n")


_active: JsonLog | None = None


def active() -> JsonLog | None:
    """The JSON log of this process; None if the process logs text."""
    return _active


def begin(format: LogFormat, pipeline: str, *, answers: bool) -> None:
    """Print JSON lines from now on, if ``format`` is ``json``. If the process ``answers`` with a
    JSON object, that object stays the only output on stdout."""
    global _active
    if format != "json":
        return
    _active = JsonLog(pipeline)
    sys.stderr = JsonStream(sys.stderr, _active)
    if not answers:
        sys.stdout = JsonStream(sys.stdout, _active)
