"""Notifies browsers of commits.

One task watches each pipeline that a browser shows: it checks whether the logs of its tables have a
next entry. Tables are read only after a commit, not at intervals.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from headgate.errors import HeadgateError
from headgate.insight.dashboard.reading.shown import Shown

LOOK_EVERY = 0.25  # seconds
ALIVE_EVERY = 15.0  # seconds: a proxy ends connections that send nothing
LASTS = 300.0  # seconds: then the browser connects again, and its rights are checked again

Numbers = tuple[tuple[str, int], ...]


@dataclass
class _WatchedTables:
    shown: Shown
    listeners: set[asyncio.Event] = field(default_factory=set)
    numbers: Numbers = ()
    task: asyncio.Task[None] | None = None


class Commits:
    """To be used within one event loop."""

    def __init__(self, look_every: float = LOOK_EVERY) -> None:
        self._look_every = look_every
        self._watched: dict[int, _WatchedTables] = {}

    @property
    def watchers(self) -> int:
        """The number of pipelines that are watched now."""
        return len(self._watched)

    async def events(
        self, pipelines: Mapping[str, Shown], lasts: float = LASTS
    ) -> AsyncIterator[str]:
        """Server-sent events: first the versions of all tables, then of those that have changed."""
        changed = asyncio.Event()
        for shown in pipelines.values():
            self._listen(shown, changed)
        try:
            yield "retry: 1000\n\n"
            told: dict[str, dict[str, int]] = {}
            until = asyncio.get_running_loop().time() + lasts
            while asyncio.get_running_loop().time() < until:
                changed.clear()
                if news := await self._news(pipelines, told):
                    yield f"event: commits\ndata: {json.dumps(news)}\n\n"
                try:
                    await asyncio.wait_for(changed.wait(), min(ALIVE_EVERY, lasts))
                except TimeoutError:
                    yield ": alive\n\n"
        finally:
            for shown in pipelines.values():
                self._leave(shown, changed)

    async def _news(
        self, pipelines: Mapping[str, Shown], told: dict[str, dict[str, int]]
    ) -> dict[str, dict[str, int]]:
        news: dict[str, dict[str, int]] = {}
        for name, shown in pipelines.items():
            watched = self._watched[id(shown)]
            now = dict(watched.numbers or await self._look(shown))
            before = told.setdefault(name, {})
            if fresh := {
                path: number for path, number in now.items() if before.get(path) != number
            }:
                news[name] = fresh
            told[name] = now
        return news

    def _listen(self, shown: Shown, changed: asyncio.Event) -> None:
        watched = self._watched.setdefault(id(shown), _WatchedTables(shown))
        watched.listeners.add(changed)
        if watched.task is None:
            watched.task = asyncio.create_task(self._watch(watched))

    def _leave(self, shown: Shown, changed: asyncio.Event) -> None:
        if (watched := self._watched.get(id(shown))) is None:
            return
        watched.listeners.discard(changed)
        if not watched.listeners:
            del self._watched[id(shown)]
            if watched.task is not None:
                watched.task.cancel()

    async def _watch(self, watched: _WatchedTables) -> None:
        while True:
            if (found := await self._look(watched.shown)) != watched.numbers:
                watched.numbers = found
                for listener in watched.listeners:
                    listener.set()
            await asyncio.sleep(self._look_every)

    async def _look(self, shown: Shown) -> Numbers:
        try:
            return await run_in_threadpool(shown.numbers)
        except (HeadgateError, OSError):
            return ()  # the page of the table shows the error
