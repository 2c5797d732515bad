"""Which requests wait for the same answer, and which answers are kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from headgate.insight.dashboard.errors import TooMuchError
from headgate.insight.dashboard.reading.answers import TOO_MUCH_FOR, Answers
from headgate.insight.dashboard.server.questions import Desk


def test_a_question_is_answered_once_at_a_time() -> None:
    answers, asked, begun = Answers(), [], threading.Event()

    def slowly() -> bytes:
        asked.append(1)
        begun.wait(10)
        return b"x"

    async def ask() -> None:
        with ThreadPoolExecutor(10) as threads:
            found = [asyncio.create_task(answers.of("key", slowly, threads)) for _ in range(10)]
            while not asked:
                await asyncio.sleep(0.001)
            found.pop(0).cancel()  # its browser has gone away
            await asyncio.sleep(0)
            begun.set()
            assert await asyncio.gather(*found) == [b"x"] * 9
            assert await answers.of("key", slowly, threads) == b"x"

    asyncio.run(ask())
    assert len(asked) == 1


def test_a_failed_answer_is_not_kept() -> None:
    answers = Answers(most_bytes=3)

    def asked(key: str, answer: Callable[[], bytes]) -> bytes:
        with ThreadPoolExecutor(1) as threads:
            return asyncio.run(answers.of(key, answer, threads))

    with pytest.raises(KeyError):
        asked("key", lambda: {}[0])  # type: ignore[index]
    assert asked("key", lambda: b"ab") == b"ab"
    assert asked("other", lambda: b"cd") == b"cd"
    assert asked("key", lambda: b"new") == b"new", "what does not fit any more is asked again"


def test_what_was_too_much_is_not_asked_again_for_a_while() -> None:
    now, asked = [0.0], []
    answers = Answers(clock=lambda: now[0])

    def too_much() -> bytes:
        asked.append(now[0])
        raise TooMuchError("it took too long", remedy="")

    async def ask() -> None:
        with ThreadPoolExecutor(1) as threads:
            for at in (0.0, 1.0, TOO_MUCH_FOR - 1, TOO_MUCH_FOR, TOO_MUCH_FOR + 1):
                now[0] = at
                with pytest.raises(TooMuchError, match="it took too long"):
                    await answers.of("key", too_much, threads)
            now[0] = 2 * TOO_MUCH_FOR
            assert await answers.of("key", lambda: b"x", threads) == b"x"

    asyncio.run(ask())
    assert asked == [0.0, TOO_MUCH_FOR]


@pytest.mark.parametrize("kind", ["questions", "charts"])
def test_slow_questions_leave_their_threads_to_others(kind: str) -> None:
    desk, end = Desk(), threading.Event()

    def slowly() -> dict[str, Any]:
        end.wait(30)
        return {}

    async def ask() -> None:
        request = Request({"type": "http", "headers": []})
        threads = desk.threads if kind == "questions" else desk.chart_threads
        asked = [
            asyncio.create_task(desk.respond(request, key, slowly, threads)) for key in range(50)
        ]
        await asyncio.sleep(0)  # all of them begin
        try:
            async with asyncio.timeout(5):
                assert await run_in_threadpool(lambda: "a login") == "a login"
        finally:
            end.set()
        assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}

    asyncio.run(ask())
