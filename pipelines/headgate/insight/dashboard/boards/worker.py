"""The process that runs the SQL of charts: ``python -m headgate.insight.dashboard.boards.worker``.

A function of DuckDB may take any amount of time and memory within one row
(``repeat('x', 4000000000)``). Neither DuckDB's limits nor an interrupt stop it then. So SQL that a
person has written runs in this process: the operating system limits its memory, and it is killed
when its time is over.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from headgate.declaration.errors import Invalid
from headgate.errors import HeadgateError
from headgate.insight.dashboard.boards.answering import ChartError, answer
from headgate.insight.dashboard.boards.binding import bound
from headgate.insight.dashboard.boards.model import Chart, TableName
from headgate.insight.dashboard.errors import TooMuchError
from headgate.insight.dashboard.questions.reader import Reader
from headgate.insight.dashboard.reading.columns import ColumnCache
from headgate.insight.dashboard.reading.engine import Engine, QueryLimits
from headgate.insight.dashboard.reading.versions import version_of

SECONDS = 10.0
MOST_MEMORY = 1 << 30
"""Bytes that a process may use in addition to those that it has when it starts."""
_MOST_KEPT = MOST_MEMORY // 4
"""Bytes that a process may keep for its next chart: DuckDB keeps the addresses of memory that it
has freed, and the limit counts them. Without ``_MOST_KEPT``, no memory would be left for a chart
after a few large ones."""
_STATUS = "/proc/self/status"
_SLACK = 2  # seconds after the interrupt of DuckDB

Places = Mapping[TableName, tuple[str, int]]
"""The address of each table, and the version of its log."""


def chart_request(chart: Chart, places: Places, seconds: float) -> bytes:
    tables = [[t.pipeline, t.table, address, n] for t, (address, n) in places.items()]
    return _line({"chart": asdict(chart), "tables": tables, "seconds": seconds})


def bind_request(sql: str, tables: Mapping[TableName, str], seconds: float) -> bytes:
    named = [[t.pipeline, t.table, columns] for t, columns in tables.items()]
    return _line({"bind": sql, "tables": named, "seconds": seconds})


def is_last(reply: Mapping[str, Any]) -> bool:
    """Whether the process ends after this reply."""
    return bool(reply["last"])


def answer_of(reply: Mapping[str, Any]) -> Any:
    """The answer in a reply. Raises TooMuchError or ChartError if the reply is an error."""
    if (error := reply.get("error")) is not None:
        kind = TooMuchError if error["too_much"] else ChartError
        raise kind(error["message"], remedy=error["remedy"])
    return reply["answer"]


def _line(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document).encode() + b"\n"


def _chart(asked: Mapping[str, Any], reader: Reader) -> Mapping[str, Any]:
    given = asked["chart"]
    tables = {TableName(t[0], t[1]): (t[2], t[3]) for t in asked["tables"]}
    chart = Chart(**{**given, "y": tuple(given["y"]), "tables": tuple(tables)})
    engine = Engine(QueryLimits(seconds=asked["seconds"], at_once=1))
    versions = {name: version_of(*place) for name, place in tables.items()}
    return answer(Reader(reader.columns, engine), chart, versions)


def _bind(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    tables = {TableName(t[0], t[1]): t[2] for t in asked["tables"]}
    try:
        found = bound(asked["bind"], tables)
    except Invalid as error:
        raise ChartError(error.message, remedy="") from error
    return {"columns": found.columns, "types": found.types}


def _answered(line: bytes, reader: Reader) -> dict[str, Any]:
    asked = json.loads(line)
    signal.alarm(int(asked["seconds"]) + _SLACK)  # the alarm ends this process, whatever it does
    try:
        return {"answer": _bind(asked) if "bind" in asked else _chart(asked, reader)}
    except HeadgateError as error:
        return {"error": _told(error.message, error.remedy, isinstance(error, TooMuchError))}
    except MemoryError:
        return {"error": _told("the answer needed too much memory", "ask for fewer rows", True)}
    except Exception as error:
        return {"error": _told(f"{type(error).__name__}: {error}", "", False)}
    finally:
        signal.alarm(0)


def _told(message: str, remedy: str, too_much: bool) -> dict[str, Any]:
    return {"message": message, "remedy": remedy, "too_much": too_much}


def _limit_memory(data: int | None) -> None:
    if data is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (data + MOST_MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _data() -> int | None:
    """The bytes of this process that RLIMIT_DATA counts; None on macOS, which has no /proc and
    applies no such limit."""
    with suppress(OSError), open(_STATUS, encoding="ascii") as status:  # noqa: PTH123
        for line in status:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return None


def main() -> None:
    # What a library prints goes to stderr, and not between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    reader = Reader(ColumnCache(most_bytes=0, most_rows=0))
    reader.engine.ask({}, "SELECT 1")
    began = _data()
    _limit_memory(began)
    last = False
    while not last and (line := sys.stdin.buffer.readline()):
        reply = _answered(line, reader)
        last = (_data() or 0) > (began or 0) + _MOST_KEPT
        answers.write(_line({**reply, "last": last}))
        answers.flush()


if __name__ == "__main__":
    main()
