"""Asks Spark's analysis about an expression, once: the answer is kept by text and columns.

The analysis runs in a process of its own (``catalyst``), which starts at the first question, and
ends when nothing was asked for ``_IDLE`` seconds, or with this process.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headgate.commands import shell_command
from headgate.declaration.errors import Invalid
from headgate.declaration.types import DataType

_FORMAT = 3  # of kept answers; raise it when the analyzer answers otherwise than before
_IDLE = 10.0  # seconds


def analyse(text: str, columns: Mapping[str, DataType]) -> Mapping[str, Any]:
    """Spark's answer (``catalyst.analyzer.Answer``) about ``text``. Raises Invalid if Spark cannot
    be asked."""
    schema = ", ".join(f"`{name}` {type_}" for name, type_ in sorted(columns.items()))
    kept = _place(text, schema)
    answer = _read(kept)
    if answer is None:
        answer = _ANALYZER.ask({"text": text, "schema": schema})
        _write(kept, answer)
    return answer


class _Analyzer:
    """The process that answers; it is started when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._idle: threading.Timer | None = None

    def ask(self, request: Mapping[str, str]) -> Mapping[str, Any]:
        with self._lock:
            if self._idle:
                self._idle.cancel()
            process = self._process = self._process or _start()
            answer = ""
            try:
                print(json.dumps(request), file=process.stdin, flush=True)
                answer = process.stdout.readline() if process.stdout else ""
            except OSError:
                pass  # it has ended
            except BaseException:  # such as Ctrl-C: its answer would be read as the next one's
                self._end()
                raise
            if not answer:
                self._end()
                raise Invalid(
                    "Spark has to check this expression once, and Java did not start or ended; "
                    f"see {shell_command('doctor')}"
                )
            self._idle = threading.Timer(_IDLE, self._end_idle)
            self._idle.daemon = True
            self._idle.start()
        found: Mapping[str, Any] = json.loads(answer)
        return found

    def leave_to_parent(self) -> None:
        """In a fork of this process: the analyzer answers to the parent."""
        process, self._process, self._idle = self._process, None, None
        self._lock = threading.Lock()
        for stream in (process.stdin, process.stdout) if process else ():
            if stream:
                with suppress(OSError):
                    stream.close()
        if process:
            process.returncode = 0  # it is no child of the fork

    def _end_idle(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        """Closing its input ends the process, and with it Java."""
        if self._process:
            for stream in (self._process.stdin, self._process.stdout):
                if stream:
                    with suppress(OSError):
                        stream.close()
            self._process.wait()
        self._process = None


_ANALYZER = _Analyzer()
os.register_at_fork(after_in_child=_ANALYZER.leave_to_parent)


def _start() -> subprocess.Popen[str]:
    # The modules of this process, also where its folder is on the path only in this process.
    package = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "headgate.declaration.catalyst"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # Ctrl-C is for this process, which then closes the other's input
    )


def _place(text: str, schema: str) -> Path | None:
    asked = json.dumps([_FORMAT, _spark(), text, schema])
    with suppress(RuntimeError):
        name = hashlib.sha256(asked.encode()).hexdigest()
        return Path.home() / ".cache" / "headgate" / "expressions" / f"{name}.json"
    return None


@cache
def _spark() -> str:
    return version("pyspark")


def _read(kept: Path | None) -> Mapping[str, Any] | None:
    with suppress(OSError, ValueError):
        answer = json.loads(kept.read_text(encoding="utf-8")) if kept else None
        return answer if isinstance(answer, dict) else None
    return None


def _write(kept: Path | None, answer: Mapping[str, Any]) -> None:
    if kept is None:
        return
    # Without a place for it, Spark is asked again the next time.
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_name(f".{kept.name}.{os.getpid()}.{threading.get_ident()}")
        draft.write_text(json.dumps(answer), encoding="utf-8")
        draft.replace(kept)
