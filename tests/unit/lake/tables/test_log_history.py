"""Looking up a position in a log gives the same result as walking through the log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.lake.storage.files import Storage
from headgate.lake.tables.log import Commit, commit_metadata, entry_path
from headgate.lake.tables.log_history import LogHistory
from headgate.lake.tables.payloads.none import NoPayload
from headgate.lake.tables.state import State

Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["data", "fence", "foreign", "back", "emptied"]), st.integers(0, 3)),
    max_size=30,
)


def write(storage: Storage, version: int, state: State | None) -> None:
    info = {} if state is None else commit_metadata(state)
    storage.write(entry_path(version), json.dumps({"commitInfo": info}).encode())


def play(storage: Storage, steps: list[Step]) -> list[State | None]:
    """Write a log of batches, fences, commits of other tools, and resets."""
    log: list[State | None] = [State(NoPayload())]
    at = 0
    for kind, number in steps:
        held = next(s for s in reversed(log) if s)
        at += number
        if kind == "data":
            log.append(data(held, number, at, len(log)))
        elif kind == "fence":
            log.append(held.held("fence", 1))
        elif kind == "foreign":
            log.append(None)
        elif kind == "emptied":
            log.append(State(NoPayload(), kind="reset", generation=held.generation + 1, at=at))
        else:
            target = number * len(log) // 4
            then = next(s for s in reversed(log[: target + 1]) if s)
            log.append(
                replace(then, kind="reset", generation=held.generation + 1, origin=target, at=at)
            )
    for version, state in enumerate(log):
        write(storage, version, state)
    return log


def data(held: State, more: int, at: int, version: int) -> State:
    n = held.n + max(more, 1)
    return replace(held, kind="data", from_n=held.n, n=n, at=at, data_commit=version, origin=None)


def walk(log: list[State | None], version: int, n: int) -> int:
    """The newest version in a lineage whose batch id is ``n`` or lower."""
    at: int | None = version
    while at is not None:
        state = log[at]
        if state is not None and state.n <= n:
            return at
        at = state.origin if state is not None and state.kind == "reset" else at - 1
    raise AssertionError("a lineage begins at 0")


def walk_to_next(log: list[State | None], version: int, n: int) -> int | None:
    """The oldest version in a lineage with a batch after batch ``n``; None without one."""
    at: int | None = version
    found: int | None = None
    while at is not None:
        state = log[at]
        if state is not None and state.n <= n:
            return found
        if state is not None:
            found = at
        at = state.origin if state is not None and state.kind == "reset" else at - 1
    raise AssertionError("a lineage begins at 0")


@pytest.mark.slow
@settings(max_examples=150)
@given(STEPS, st.data())
def test_it_is_found_where_a_walk_would_find_it(
    tmp_path_factory: object, steps: list[Step], data: st.DataObject
) -> None:
    storage = Storage(str(tmp_path_factory.mktemp("log")))  # type: ignore[attr-defined]
    log = play(storage, steps)
    past = LogHistory(storage, 0)
    for _ in range(5):
        version = data.draw(st.integers(0, len(log) - 1))
        n = data.draw(st.integers(0, 40))
        assert past.reaching(version, n).version == walk(log, version, n)
        following = past.following(version, n)
        assert (following and following.version) == walk_to_next(log, version, n)
        moment = data.draw(st.integers(0, 90))
        older = [v for v, s in enumerate(log[: version + 1]) if s and s.at <= moment]
        found = past.before(version, moment)
        assert past.commit(found).version == max(older)
        after = data.draw(st.integers(0, version))
        resets = [v for v, s in enumerate(log) if s and s.kind == "reset" and after < v <= version]
        assert [each.version for each in past.resets(after, version)] == resets[::-1]


def test_a_log_that_begins_later_gives_its_oldest_entry(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    play(storage, [("data", 1)] * 9)
    past = LogHistory(storage, 5)
    assert past.reaching(9, 2).version == 5
    assert past.reaching(9, 7).version == 7
    assert [past.following(9, n).version for n in (2, 7)] == [5, 8]  # type: ignore[union-attr]
    assert past.following(9, 9) is None
    assert past.before(9, 0) == 5
    assert past.before(9, 8) == 8


@pytest.mark.slow
def test_little_is_read_of_a_long_log(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    play(storage, [("data", 1)] * 2000)
    past = LogHistory(storage, 0)
    past.reaching(2000, 3)
    past.before(2000, 700)
    assert len(past._read) < 60


def test_a_commit_of_somebody_else_says_nothing(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    play(storage, [("data", 1), ("foreign", 0), ("foreign", 0)])
    commit: Commit = LogHistory(storage, 0).commit(3)
    assert (commit.version, commit.state.n) == (1, 1)
