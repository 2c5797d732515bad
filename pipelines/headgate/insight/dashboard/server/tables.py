"""Endpoints about one table."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, cast

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from headgate.declaration.contracts.operator import late_bounds_of, late_identity
from headgate.declaration.kinds import LATE, QUARANTINE, REJECTED
from headgate.insight.dashboard.errors import NotFoundError
from headgate.insight.dashboard.questions import about as about_page
from headgate.insight.dashboard.questions import refused
from headgate.insight.dashboard.questions.refused import RefusedQuestion
from headgate.insight.dashboard.questions.rows import REACHABLE, RowsQuestion, rows, write_file
from headgate.insight.dashboard.questions.selection import selection, whole
from headgate.insight.dashboard.questions.series import SeriesQuestion, grouping, series
from headgate.insight.dashboard.questions.top import top, values
from headgate.insight.dashboard.questions.view import GoldView, TableView
from headgate.insight.dashboard.reading.shown import Shown
from headgate.insight.dashboard.server.context import context_of
from headgate.insight.dashboard.server.questions import Desk, Document, key_of

_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
_PART = 1 << 18  # bytes of a file that are sent at once


class TableEndpoints:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def gold(self, question: str, request: Request) -> Response:
        """The answer of one of ``OF_GOLD``."""
        shown, name = _named(request)
        paths = about_page.paths_behind(shown, name)
        # A hold is a document, not a commit, so the versions in the key do not show it.
        held = about_page.held if question == "about" else lambda *_: None
        said = str(await run_in_threadpool(held, shown, name))
        given = request.query_params
        key = (name, said, key_of(question, shown, paths, given.multi_items()))

        def answered() -> Document:
            return OF_GOLD[question](GoldView.of(self._desk.reader, shown, name), given)

        return await self._desk.respond(request, key, self._desk.read_again(shown, answered))

    async def file(self, request: Request) -> Response:
        """The selected rows as a file, which has no name: it is deleted when the request or process
        ends."""
        shown, name = _named(request)
        form = request.path_params["form"]

        def written() -> BinaryIO:
            view = GoldView.of(self._desk.reader, shown, name)
            asked = selection(view.facts, request.query_params.multi_items())
            file = cast(BinaryIO, tempfile.TemporaryFile())
            try:
                write_file(view, asked, form, file)
            except BaseException:
                file.close()
                raise
            return file

        loop = asyncio.get_running_loop()
        file = await loop.run_in_executor(self._desk.threads, written)
        headers = {
            "Content-Length": str(file.tell()),
            "Content-Disposition": f'attachment; filename="{shown.name}.{name}.{form}"',
        }
        return StreamingResponse(_content(file), media_type=_TYPES[form], headers=headers)

    async def late(self, request: Request) -> Response:
        shown, name = _named(request)
        path, declared = LATE.path(name), shown.gold(name)
        bounds, identity = late_bounds_of(declared), late_identity(declared)
        answer = partial(refused.late_rows, bounds=bounds, identity=identity)
        return await self._refused(request, "late", shown, path, answer)

    async def quarantine(self, request: Request) -> Response:
        shown = context_of(request).pipeline(request.path_params["pipeline"])
        sources = [*shown.pipeline.sources]
        source = request.path_params.get("source", sources[0])
        if source not in sources:
            raise NotFoundError(
                f"{shown.name} has no source {source}", remedy=f"there are: {', '.join(sources)}"
            )
        path, answer = QUARANTINE.path(source), refused.quarantined
        return await self._refused(request, "quarantine", shown, path, answer)

    async def rejected(self, request: Request) -> Response:
        shown, name = _named(request)
        return await self._refused(
            request, "rejected", shown, REJECTED.path(name), refused.rejected
        )

    async def _refused(
        self,
        request: Request,
        question: str,
        shown: Shown,
        path: str,
        answer: Callable[[TableView, RefusedQuestion], Document],
    ) -> Response:
        given = request.query_params
        asked = RefusedQuestion(
            reason=given.get("reason") or None,
            show_values=context_of(request).show_values,
            **_page(given),
        )
        key = key_of(f"{question} {asked}", shown, (path,), ())

        def answered() -> Document:
            return answer(TableView(self._desk.reader, shown.existing(path)), asked)

        return await self._desk.respond(request, key, self._desk.read_again(shown, answered))


def _series(view: GoldView, given: QueryParams) -> Document:
    figure = view.facts.figure(given.get("figure"))
    question = SeriesQuestion(
        figure=figure,
        by=grouping(view.facts, figure, given.get("by")),
        selection=selection(view.facts, given.multi_items()),
        width=whole(given, "width", 800, 10, 2_000),
        top=whole(given, "top", 5, 1, 8),
    )
    return series(view, question)


def _top(view: GoldView, given: QueryParams) -> Document:
    known = view.facts
    if not known.keys:
        return {"rows": [], "by": [], "groups": 0}
    by = tuple(known.key(each) for each in given.getlist("by") if each) or known.keys
    figure = known.figure(given.get("figure"))
    chosen = selection(known, given.multi_items())
    return top(view, figure, by, chosen, whole(given, "most", 10, 1, 50))


def _rows(view: GoldView, given: QueryParams) -> Document:
    chosen = selection(view.facts, given.multi_items())
    return rows(view, RowsQuestion(chosen, given.get("sort"), **_page(given)))


def _values(view: GoldView, given: QueryParams) -> Document:
    key = view.facts.key(given.get("key") or (view.facts.keys or ("",))[0])
    return {"key": key, "values": values(view, key, given.get("part", "")[:200])}


OF_GOLD: Mapping[str, Callable[[GoldView, QueryParams], Document]] = {
    "about": lambda view, _: about_page.about(view),
    "series": _series,
    "top": _top,
    "rows": _rows,
    "values": _values,
}
"""The questions about a gold table, with the parameters of the address."""


def _page(given: QueryParams) -> dict[str, int]:
    """The fields of a ``PageQuestion``."""
    page, size = whole(given, "page", 0, 0, REACHABLE), whole(given, "size", 50, 1, 200)
    return {"page": page, "size": size}


def _named(request: Request) -> tuple[Shown, str]:
    """The pipeline and the table of an address. Raises NotFoundError."""
    found: Any = request.path_params
    return context_of(request).pipeline(found["pipeline"]), found["table"]


def _content(file: BinaryIO) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while part := file.read(_PART):
            yield part
