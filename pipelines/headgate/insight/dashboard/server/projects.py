"""Endpoints about all that a request may see: the overview, ledgers and dashboards."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from headgate.declaration.kinds import GOLD
from headgate.declaration.model import Pipeline
from headgate.insight.dashboard.boards.binding import Bind, Result
from headgate.insight.dashboard.boards.model import Board, TableName
from headgate.insight.dashboard.boards.reading import BoardError, board_files, read_board
from headgate.insight.dashboard.boards.runner import NotNowError
from headgate.insight.dashboard.boards.worker import Places
from headgate.insight.dashboard.errors import NotFoundError
from headgate.insight.dashboard.questions import overview
from headgate.insight.dashboard.reading.answers import TOO_MUCH_FOR
from headgate.insight.dashboard.reading.shown import Shown
from headgate.insight.dashboard.server.commits import Commits
from headgate.insight.dashboard.server.context import Context, context_of, is_about
from headgate.insight.dashboard.server.questions import Desk, Document, key_of

Read = TypeVar("Read")


class ProjectEndpoints:
    def __init__(self, desk: Desk, commits: Commits) -> None:
        self._desk, self._commits = desk, commits
        self._known = _Boards()

    async def overview(self, request: Request) -> Response:
        """All pipelines: from commits and documents alone, no data file is read."""
        context = context_of(request)
        document = await self._read(partial(self._overview, context, datetime.now(UTC)))
        return JSONResponse(document)

    def _overview(self, context: Context, now: datetime) -> Document:
        boards, problems = self._boards(context)
        return {
            "at": now.isoformat(),
            "pipelines": [overview.overview(shown, now) for shown in context.pipelines.values()],
            "boards": [{"name": board.name, "title": board.title} for board in boards],
            "problems": [*context.problems, *problems],
        }

    async def ledger(self, request: Request) -> Response:
        shown = context_of(request).pipeline(request.path_params["pipeline"])
        key = key_of("ledger", shown, shown.tables, ())

        def answered() -> Document:
            return overview.ledger(shown)

        return await self._desk.respond(request, key, self._desk.read_again(shown, answered))

    async def events(self, request: Request) -> Response:
        """Server-sent events of the commits of some pipelines, or of all."""
        context = context_of(request)
        asked = request.query_params.getlist("pipeline")
        names = asked or list(context.pipelines)
        pipelines = {name: context.pipeline(name) for name in names}
        return StreamingResponse(
            self._commits.events(pipelines),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def board(self, request: Request) -> Response:
        board = await self._read(partial(self._board, request))
        charts = [
            {"name": c.name, "title": c.title, "kind": c.kind, "width": c.width}
            for c in board.charts.values()
        ]
        return JSONResponse({"name": board.name, "title": board.title, "charts": charts})

    async def chart(self, request: Request) -> Response:
        context = context_of(request)
        board = await self._read(partial(self._board, request))
        chart = board.charts.get(request.path_params["chart"])
        if chart is None:
            known = ", ".join(board.charts)
            raise NotFoundError(f"{board.name} has no such chart", remedy=f"its charts: {known}")
        places = {name: _shown(name, context) for name in chart.tables}
        keys = []
        for name, shown in places.items():
            is_about(request, shown)
            keys.append(key_of("chart", shown, (GOLD.path(name.table),), ()))
        is_about(request, *places.values())

        def answered() -> Document:
            return self._desk.charts.ask(chart, _places(places))

        key, threads = ((*keys,), chart.name, str(chart)), self._desk.chart_threads
        return await self._desk.respond(request, key, answered, threads)

    async def _read(self, read: Callable[[], Read]) -> Read:
        """Run ``read``, which needs the files of boards, on threads for it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._desk.board_threads, read)

    def _board(self, request: Request) -> Board:
        """The board of a request. Raises NotFoundError; its remedy has the problems of invalid
        files."""
        context, name = context_of(request), request.path_params["board"]
        boards, problems = self._boards(context)
        for board in boards:
            if board.name == name:
                return board
        why = "\n".join(problems) or f"there are: {', '.join(b.name for b in boards) or 'none'}"
        raise NotFoundError(f"there is no dashboard {name} here", remedy=why)

    def _boards(self, context: Context) -> tuple[list[Board], list[str]]:
        """The dashboards that can be read, and what is wrong with others."""
        boards: dict[str, Board] = {}
        problems: list[str] = []
        pipelines = {name: shown.pipeline for name, shown in context.pipelines.items()}
        for file in _files(context):
            try:
                board = self._known.board(file, pipelines, self._desk.charts.bind)
                boards.setdefault(board.name, board)
            except BoardError as error:
                problems += map(str, error.problems)
        return list(boards.values()), problems


def _places(places: Mapping[TableName, Shown]) -> Places:
    found: dict[TableName, tuple[str, int]] = {}
    for name, shown in places.items():
        version = shown.version(GOLD.path(name.table))
        if version is None:
            raise NotFoundError(f"there is no table {name} yet", remedy="run its pipeline")
        found[name] = version.place
    return found


def _shown(name: TableName, context: Context) -> Shown:
    if name.pipeline is not None:
        return context.pipeline(name.pipeline)
    return next(s for s in context.pipelines.values() if name.table in s.pipeline.gold)


def _files(context: Context) -> Iterator[Path]:
    for project in dict.fromkeys(context.projects):
        yield from board_files(project)


class _Boards:
    """A cache of files. A file is read again if it or a declaration changes; if the machine was too
    busy to examine it, after ``TOO_MUCH_FOR`` seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: dict[Path, tuple[Any, float, Board | BoardError]] = {}
        self._clock = clock

    def board(self, file: Path, pipelines: Mapping[str, Pipeline], bind: Bind) -> Board:
        """Raises BoardError."""
        state = file.stat()
        key = (state.st_mtime_ns, state.st_size, *((n, p.digest) for n, p in pipelines.items()))
        kept = self._kept.get(file)
        if kept is None or kept[0] != key or kept[1] <= self._clock():
            until = math.inf

            def examined(sql: str, tables: Mapping[TableName, str]) -> Result:
                nonlocal until
                try:
                    return bind(sql, tables)
                except NotNowError:
                    until = self._clock() + TOO_MUCH_FOR
                    raise

            found = _read(file, pipelines, examined)
            kept = self._kept[file] = (key, until, found)
        if isinstance(kept[2], BoardError):
            raise kept[2]
        return kept[2]


def _read(file: Path, pipelines: Mapping[str, Pipeline], bind: Bind) -> Board | BoardError:
    try:
        return read_board(file, pipelines, bind)
    except BoardError as error:
        return error
