"""The endpoints that answer questions, as JSON. Answers are cached by the versions of the tables
that they are about."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from math import isfinite
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from headgate.insight.dashboard.boards.runner import ChartRunner
from headgate.insight.dashboard.questions.reader import Reader
from headgate.insight.dashboard.reading.answers import Answers
from headgate.insight.dashboard.reading.shown import Shown

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Desk:
    """What all questions share. Questions may wait for each other, so they have threads of their
    own: pages, logins and the tasks that watch commits have others."""

    reader: Reader = field(default_factory=Reader)
    answers: Answers = field(default_factory=Answers)
    charts: ChartRunner = field(default_factory=ChartRunner)
    threads: Executor = field(default_factory=partial(ThreadPoolExecutor, 8, "questions"))
    # One process runs the SQL of charts, so a second thread would only wait for it.
    chart_threads: Executor = field(default_factory=partial(ThreadPoolExecutor, 1, "charts"))
    # Reading a new board waits for that process, too: it binds the SQL.
    board_threads: Executor = field(default_factory=partial(ThreadPoolExecutor, 4, "boards"))

    async def respond(
        self,
        request: Request,
        key: Hashable,
        answer: Callable[[], Document],
        threads: Executor | None = None,
    ) -> Response:
        """The kept answer of a key, or a new one; 304 if the browser has it."""
        asked = threads or self.threads
        content = await self.answers.of(key, lambda: encoded(answer()), asked)
        tag = f'"{sha256(content).hexdigest()[:32]}"'
        headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
        if request.headers.get("If-None-Match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type="application/json", headers=headers)

    def read_again(self, shown: Shown, answer: Callable[[], Document]) -> Callable[[], Document]:
        """An ``answer`` that is called again if a file of the version was deleted in the
        meantime."""

        def asked() -> Document:
            try:
                return answer()
            except OSError:
                for table in shown.tables.values():
                    table.forget()
                return answer()

        return asked


def key_of(
    question: str, shown: Shown, paths: Iterable[str], asked: Iterable[tuple[str, str]]
) -> Hashable:
    """The key of a question, equal for the same question about the same versions. The order of
    parameters has no effect."""
    versions = tuple((path, v.key if (v := shown.version(path)) else None) for path in paths)
    return (question, shown.layout.storage.root, versions, tuple(sorted(asked)))


def encoded(document: Document) -> bytes:
    try:
        text = json.dumps(document, default=str, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(document), default=str, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace")


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null, a gap in a chart."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
