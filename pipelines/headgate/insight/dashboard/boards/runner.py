"""Sends requests to the process that runs the SQL of charts, and replaces it if it is too slow."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from threading import Lock
from typing import Any

from headgate.declaration.errors import Invalid
from headgate.insight.dashboard.boards import worker
from headgate.insight.dashboard.boards.answering import ChartError
from headgate.insight.dashboard.boards.binding import Result
from headgate.insight.dashboard.boards.model import Chart, TableName
from headgate.insight.dashboard.boards.worker import SECONDS, Places
from headgate.insight.dashboard.errors import TooMuchError

_SLACK = 3.0  # seconds after which the process is killed
_STARTS_WITHIN = 20.0  # seconds, on a busy machine


class NotNowError(Invalid):
    """A statement was not examined in time. Later the machine may be less busy."""


class ChartRunner:
    """One process, which starts with the first request and ends with ``close``."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def ask(self, chart: Chart, places: Places) -> Mapping[str, Any]:
        """The answer of a chart. Blocks: requests are answered one at a time. Raises TooMuchError
        or ChartError."""
        found: Mapping[str, Any] = self._asked(worker.chart_request(chart, places, self._seconds))
        return found

    def bind(self, sql: str, tables: Mapping[TableName, str]) -> Result:
        """As ``binding.bound``. Raises Invalid, or NotNowError."""
        try:
            found = self._asked(worker.bind_request(sql, tables, self._seconds))
        except ChartError as error:
            raise Invalid(error.message) from error
        except TooMuchError as error:
            raise NotNowError(error.message) from error
        return Result(tuple(found["columns"]), tuple(found["types"]))

    def _asked(self, request: bytes) -> Any:
        with self._lock:
            patience = self._seconds + _SLACK
            if self._process is None or self._process.poll() is not None:
                self._end()
                self._process = _started()
                patience += _STARTS_WITHIN
            if not (line := _exchanged(self._process, request, patience)):
                self._end()
                raise TooMuchError(
                    f"the answer took longer than {self._seconds:.0f} s, or needed too much memory",
                    remedy="ask about a shorter time, or fewer rows",
                )
            reply = json.loads(line)
            if worker.is_last(reply):
                self._end()
        return worker.answer_of(reply)

    def close(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        if (process := self._process) is None:
            return
        self._process = None
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", worker.__name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,  # Ctrl-C in the terminal must not end it
    )


def _exchanged(process: subprocess.Popen[bytes], request: bytes, patience: float) -> bytes:
    """The line that answers a request; empty if the process has ended or is too slow."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(request)
    except BrokenPipeError:
        return b""
    until, found = time.monotonic() + patience, b""
    while not found.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(until - time.monotonic(), 0))
        part = process.stdout.read(1 << 20) if ready else b""
        if not part:
            return b""
        found += part
    return found
