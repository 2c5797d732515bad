"""Endpoints about one table."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from headgate.dashboard.errors import NotFoundError
from headgate.dashboard.questions import about as about_page
from headgate.dashboard.questions import refused
from headgate.dashboard.questions.facts import Facts, facts
from headgate.dashboard.questions.refused import RefusedQuestion
from headgate.dashboard.questions.rows import REACHABLE, RowsQuestion, rows, write_file
from headgate.dashboard.questions.selection import selection, whole
from headgate.dashboard.questions.series import SeriesQuestion, grouping, series
from headgate.dashboard.questions.top import top, values
from headgate.dashboard.reading.shown import Shown
from headgate.dashboard.reading.versions import Version
from headgate.dashboard.server.context import context_of
from headgate.dashboard.server.questions import Desk, Document, key_of
from headgate.declaration.kinds import GOLD, LATE, QUARANTINE
from headgate.declaration.model import GoldTable
from headgate.declaration.operators import columns_of

_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
_PART = 1 << 18  # bytes of a file that are sent at once

OfGold = Callable[[Request, Shown, GoldTable, Facts, Version], Document]


class TableEndpoints:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def about(self, request: Request) -> Response:
        return await self._of_gold("about", request, self._about)

    async def series(self, request: Request) -> Response:
        return await self._of_gold("series", request, self._series)

    async def top(self, request: Request) -> Response:
        return await self._of_gold("top", request, self._top)

    async def rows(self, request: Request) -> Response:
        return await self._of_gold("rows", request, self._rows)

    async def values(self, request: Request) -> Response:
        return await self._of_gold("values", request, self._values)

    async def file(self, request: Request) -> Response:
        """The selected rows as a file, which has no name: it is deleted when the request or process
        ends."""
        shown, name = _named(request)
        form = request.path_params["form"]

        def written() -> BinaryIO:
            declared = shown.gold(name)
            known, gold = facts(declared), _existing(shown, GOLD.path(name))
            asked = selection(known, request.query_params.multi_items())
            file = cast(BinaryIO, tempfile.TemporaryFile())
            try:
                write_file(self._desk.reader, declared, known, asked, gold, form, file)
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
        path, bounds = LATE.path(name), tuple(columns_of(shown.gold(name)))

        def answer(version: Version, question: RefusedQuestion) -> Document:
            return refused.late_rows(self._desk.reader, version, question, bounds)

        return await self._refused(request, "late", shown, path, answer)

    async def quarantine(self, request: Request) -> Response:
        shown = context_of(request).pipeline(request.path_params["pipeline"])
        (source,) = list(shown.pipeline.sources)[:1]

        def answer(version: Version, question: RefusedQuestion) -> Document:
            return refused.quarantined(self._desk.reader, version, question)

        return await self._refused(request, "quarantine", shown, QUARANTINE.path(source), answer)

    async def _refused(
        self,
        request: Request,
        question: str,
        shown: Shown,
        path: str,
        answer: Callable[[Version, RefusedQuestion], Document],
    ) -> Response:
        given = request.query_params
        asked = RefusedQuestion(
            reason=given.get("reason") or None,
            page=whole(given, "page", 0, 0, REACHABLE),
            size=whole(given, "size", 50, 1, 200),
            show_values=context_of(request).show_values,
        )
        key = key_of(f"{question} {asked}", shown, (path,), ())

        def answered() -> Document:
            return answer(_existing(shown, path), asked)

        return await self._desk.respond(request, key, self._desk.read_again(shown, answered))

    async def _of_gold(self, question: str, request: Request, answer: OfGold) -> Response:
        shown, name = _named(request)
        declared = shown.gold(name)
        paths = about_page.paths_behind(shown, name)
        # A hold is a document, not a commit, so the versions in the key do not show it.
        held = about_page.held if question == "about" else lambda *_: None
        said = str(await run_in_threadpool(held, shown, name))
        asked = request.query_params.multi_items()
        key = (name, said, key_of(question, shown, paths, asked))

        def answered() -> Document:
            gold = _existing(shown, GOLD.path(name))
            return answer(request, shown, declared, facts(declared), gold)

        return await self._desk.respond(request, key, self._desk.read_again(shown, answered))

    def _about(
        self, _: Request, shown: Shown, __: GoldTable, known: Facts, gold: Version
    ) -> Document:
        return about_page.about(self._desk.reader, shown, known, gold)

    def _series(
        self, request: Request, shown: Shown, declared: GoldTable, known: Facts, gold: Version
    ) -> Document:
        given = request.query_params
        figure = known.figure(given.get("figure"))
        question = SeriesQuestion(
            figure=figure,
            by=grouping(known, figure, given.get("by")),
            selection=selection(known, given.multi_items()),
            width=whole(given, "width", 800, 10, 2_000),
            top=whole(given, "top", 5, 1, 8),
        )
        late = shown.version(LATE.path(declared.name))
        return series(self._desk.reader, declared, known, question, gold, late)

    def _top(
        self, request: Request, _: Shown, declared: GoldTable, known: Facts, gold: Version
    ) -> Document:
        given = request.query_params
        if not known.keys:
            return {"rows": [], "by": [], "groups": 0}
        by = tuple(known.key(each) for each in given.getlist("by") if each) or known.keys
        figure = known.figure(given.get("figure"))
        chosen = selection(known, given.multi_items())
        most = whole(given, "most", 10, 1, 50)
        return top(self._desk.reader, declared, known, figure, by, chosen, gold, most)

    def _rows(
        self, request: Request, _: Shown, declared: GoldTable, known: Facts, gold: Version
    ) -> Document:
        given = request.query_params
        question = RowsQuestion(
            selection=selection(known, given.multi_items()),
            sort=given.get("sort"),
            page=whole(given, "page", 0, 0, REACHABLE),
            size=whole(given, "size", 50, 1, 200),
        )
        return rows(self._desk.reader, declared, known, question, gold)

    def _values(
        self, request: Request, _: Shown, __: GoldTable, known: Facts, gold: Version
    ) -> Document:
        given = request.query_params
        key, part = (
            known.key(given.get("key") or (known.keys or ("",))[0]),
            given.get("part", "")[:200],
        )
        return {"key": key, "values": values(self._desk.reader, key, part, gold)}


def _named(request: Request) -> tuple[Shown, str]:
    """The pipeline and the table of an address. Raises NotFoundError."""
    found: Any = request.path_params
    return context_of(request).pipeline(found["pipeline"]), found["table"]


def _existing(shown: Shown, path: str) -> Version:
    if (version := shown.version(path)) is None:
        raise NotFoundError(
            f"{shown.name} has no table {path.replace('/', '.')} yet",
            remedy="it appears with the first batch",
        )
    return version


def _content(file: BinaryIO) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while part := file.read(_PART):
            yield part
