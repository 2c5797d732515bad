"""What is read, and how often."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest

from headgate.insight.dashboard.login.passwords import FILE, Password, made
from headgate.insight.dashboard.login.sessions import LoginSessions
from headgate.insight.dashboard.login.throttle import FREE, Throttle
from headgate.insight.dashboard.questions import reader
from headgate.insight.dashboard.questions.reader import Reader
from headgate.insight.dashboard.questions.selection import span
from headgate.insight.dashboard.questions.view import GoldView
from headgate.insight.dashboard.reading.columns import ColumnCache
from headgate.insight.dashboard.reading.shown import Declarations
from headgate.insight.dashboard.server.app import dashboard_app
from headgate.insight.dashboard.server.commits import Commits
from headgate.insight.dashboard.server.context import SCOPE, Context
from headgate.insight.dashboard.server.questions import Desk, encoded, key_of
from tests.support.charted import Charted, sale


def test_a_commit_costs_the_reading_of_its_files(shop: Charted) -> None:
    cache, table = ColumnCache(), shop.shown().tables["gold/sales"]
    for batch in range(5):
        table.forget()
        version = table.current()
        assert version is not None
        read = cache.source(version, ("orders", "final"))
        assert (read.num_rows, len(version.fragments)) == (5 + batch, 2 + batch)
        assert cache.columns_read == 2 * (2 + 2 * batch), "of the two new files alone"
        shop.sell(open_=[sale(3, "app", 1, "5.00")], final=[sale(9 + batch, "app", 1, "1.00")])


def test_memory_is_bounded(shop: Charted) -> None:
    shop.sell(final=[sale(each, "x" * 1000, 1, "1.00") for each in range(100)])
    version = shop.shown().version("gold/sales")
    assert version is not None
    cache = ColumnCache(most_bytes=200_000)
    assert cache.source(version, ("channel",)).num_rows == 104
    assert cache._bytes > 100_000
    cache = ColumnCache(most_bytes=10_000)
    assert cache.source(version, ("orders",)).num_rows == 104
    # A repeated text is in a file once, so that its size tells little.
    assert cache.source(version, ("channel",)) is version.dataset
    assert cache._bytes <= 10_000
    assert sum(table.nbytes for table in cache._assembled.values()) <= 10_000


def test_columns_that_do_not_fit_are_not_read(shop: Charted) -> None:
    """Not even once: the machine may not have the memory."""
    shop.sell(final=[sale(each, f"{each:01000}", 1, "1.00") for each in range(100)])
    version = shop.shown().version("gold/sales")
    assert version is not None
    cache = ColumnCache(most_bytes=50_000)
    for _ in range(2):
        assert cache.source(version, ("channel",)) is version.dataset
    assert cache.source(version, ("orders",)).num_rows == 104
    assert cache.columns_read < 2 * len(version.fragments)


def test_a_version_that_has_too_many_rows_is_not_read(shop: Charted) -> None:
    shop.sell(final=[sale(each, "app", 1, "1.00") for each in range(10)])
    version = shop.shown().version("gold/sales")
    assert version is not None
    assert ColumnCache(most_rows=10).source(version, ("channel",)) is version.dataset


def test_threads_may_forget_facts_that_others_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_KNOWN", 1)
    shared, asked = Reader(), range(20_000)

    def ask(_: int) -> list[int]:
        return [shared.known("same", n % 3, partial(int, n % 3)) for n in asked]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = [*pool.map(ask, range(8))]
    finally:
        sys.setswitchinterval(before)
    assert found == [[n % 3 for n in asked]] * 8
    assert len(shared._known) == 1


def test_a_version_that_is_held_is_never_shown(shop: Charted) -> None:
    """The log has no commit of a held version, nor of a rebuild, which has its own log."""
    shown = shop.shown()
    before = shown.version("gold/sales")
    folder = shop.folder / "lake/shop/gold/sales/data/0-9-held/final=true"
    folder.mkdir(parents=True)
    (folder / "part-0.parquet").write_bytes(b"not even a table")
    shown.tables["gold/sales"].forget()
    after = shown.version("gold/sales")
    assert before is not None
    assert after is not None
    assert after.key == before.key


@pytest.mark.parametrize("is_seen_to_be_gone", [True, False])
def test_a_lake_that_was_made_again(shop: Charted, is_seen_to_be_gone: bool) -> None:
    """The new lake has the same version numbers as the first one."""
    cache, shown = ColumnCache(), shop.shown()
    table = shown.tables["gold/sales"]

    def seen() -> tuple[int, list[int], Hashable]:
        table.forget()
        version = table.current()
        assert version is not None
        orders = cache.source(version, ("orders",)).column("orders").to_pylist()
        return version.number, sorted(orders), key_of("rows", shown, ("gold/sales",), ())

    number, orders, key = seen()
    assert (number, orders) == (1, [1, 2, 3, 4, 6])
    shutil.rmtree(shop.layout.storage.root)
    if is_seen_to_be_gone:
        table.forget()
        assert table.current() is None
    again = Charted(shop.folder)
    again.sell(final=[sale(0, "web", 9, "90.00")])
    assert seen()[:2] == (1, [9])
    assert seen()[2] != key, "an answer about the first one is no answer"
    again.sell(final=[sale(1, "web", 7, "70.00")])
    assert seen()[:2] == (2, [7, 9])


def test_ten_browsers_cost_one_read_of_each_commit(shop: Charted) -> None:
    desk, shown = Desk(), shop.shown()
    context = Context({"shop": shown}, (), "")
    app = dashboard_app(desk)

    async def as_allowed(scope, receive, send):  # type: ignore[no-untyped-def]
        await app({**scope, SCOPE: context}, receive, send)

    async def ask() -> None:
        transport = httpx.ASGITransport(app=as_allowed)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            paths = ["series?figure=orders", "top", "rows"]
            asked = [client.get(f"/api/gold/shop/sales/{p}") for p in paths for _ in range(10)]
            assert {each.status_code for each in await asyncio.gather(*asked)} == {200}

    asyncio.run(ask())
    first = desk.reader.columns.columns_read
    asyncio.run(ask())
    assert desk.reader.columns.columns_read == first, "nothing new, nothing read"
    shop.sell(open_=[sale(3, "app", 2, "5.00")])
    shown.tables["gold/sales"].forget()
    asyncio.run(ask())
    version = shown.version("gold/sales")
    assert version is not None
    assert desk.reader.columns.columns_read == first + len(version.schema.names), (
        "each column of the new file once"
    )


@pytest.mark.slow
def test_one_watcher_tells_all_of_a_commit(shop: Charted) -> None:
    commits, shown = Commits(look_every=0.02), shop.shown()

    begun: list[str] = []

    async def listen() -> list[str]:
        events = commits.events({"shop": shown}, lasts=30)
        assert await anext(events) == "retry: 1000\n\n"
        begun.append(await anext(events))
        assert '"gold/sales": 1' in begun[-1]
        return [await anext(events)]

    async def watched() -> list[list[str]]:
        listeners = [asyncio.create_task(listen()) for _ in range(10)]
        async with asyncio.timeout(20):
            while len(begun) < len(listeners):
                await asyncio.sleep(0.01)
            assert commits.watchers == 1
            await asyncio.to_thread(shop.sell, [sale(3, "app", 2, "5.00")])
            return await asyncio.gather(*listeners)

    told = asyncio.run(watched())
    assert all('{"shop": {"gold/sales": 2}}' in each[0] for each in told)


def test_nobody_listens_nobody_watches(shop: Charted) -> None:
    commits, shown = Commits(), shop.shown()

    async def listen() -> int:
        events = commits.events({"shop": shown})
        await anext(events)
        await events.aclose()  # type: ignore[attr-defined]
        return commits.watchers

    assert asyncio.run(listen()) == 0


def test_a_changed_declaration_is_read_again(shop: Charted) -> None:
    declarations = Declarations()
    first = declarations.shown(shop.file, shop.root)
    assert declarations.shown(shop.file, shop.root) is first
    text = shop.file.read_text()
    shop.file.write_text("pipeline: [")
    assert declarations.shown(shop.file, shop.root) is first, "it stays as it was"
    shop.file.write_text(text.replace("typical", "usual"))
    assert "usual" in str(declarations.shown(shop.file, shop.root).gold("sales").measures)


def test_json_has_no_nan() -> None:
    document = {"v": [1.0, float("nan"), float("inf")], "deep": ({"x": float("-inf")},)}
    assert encoded(document) == b'{"v": [1.0, null, null], "deep": [{"x": null}]}'


def test_sessions_end() -> None:
    now = [0.0]
    sessions = LoginSessions(lasts=10, clock=lambda: now[0])
    token = sessions.begin()
    assert (sessions.is_open(token), sessions.is_open("x"), sessions.is_open(None)) == (
        True,
        False,
        False,
    )
    now[0] = 10.0
    assert not sessions.is_open(token)


def test_waits_grow() -> None:
    now = [1000.0]
    throttle = Throttle(lambda: now[0])
    waits = []
    for _ in range(6):
        assert throttle.attempt("a") == 0
        waits.append(throttle.attempt("a"))
        now[0] += waits[-1]
    assert waits == [0.0] * 2 + [1.0, 2.0, 4.0, 8.0]
    for guest in range(50):
        throttle.attempt(f"guest {guest}")
    assert throttle.attempt("c") > 0, "many addresses wait together"
    now[0] += 100
    assert throttle.attempt("a") == 0


def test_guesses_that_come_together_are_counted() -> None:
    throttle = Throttle(lambda: 1000.0)
    with ThreadPoolExecutor(20) as clients:
        waits = list(clients.map(throttle.attempt, ["a"] * 100))
    assert waits.count(0) == FREE


def test_right_passwords_are_no_guesses() -> None:
    throttle = Throttle(lambda: 1000.0)
    for guest in range(200):
        assert throttle.attempt(f"guest {guest}") == 0
        throttle.succeeded(f"guest {guest}")


def test_passwords(tmp_path: Path) -> None:
    first = made(tmp_path)
    assert first is not None
    assert made(tmp_path) is None, "it stays as it was"
    assert Password(tmp_path).is_right(first)
    assert not Password(tmp_path).is_right(f"{first} ")
    assert not Password(tmp_path).is_right("\ud800")
    second = made(tmp_path, anew=True)
    assert second is not None
    assert not Password(tmp_path).is_right(first)
    assert second not in (tmp_path / FILE).read_text()


def test_only_the_newest_times_of_a_table_are_kept(shop: Charted) -> None:
    """They may need megabytes, and each commit has other ones."""
    shown, shared = shop.shown(), Reader()
    for batch in range(3):
        shown.tables["gold/sales"].forget()
        found = span(GoldView.of(shared, shown, "sales"))
        assert found is span(GoldView.of(shared, shown, "sales"))
        assert found is not None
        shop.sell(final=[sale(20 + batch, "app", 1, "1.00")])
    assert len(shared._known) == 1
