"""What a publication has not sent yet."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from headgate.declaration.model import Publication, PublishedWhen
from headgate.insight.metrics.parts.unsent import Unsent
from headgate.insight.metrics.tail import TableTail
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.log import Commit
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.state import Kind, State, commit_time, time_of
from tests.unit.insight.ledger.conftest import NOON, Lake
from tests.unit.insight.metrics.conftest import NOW

PATH = "gold/per_minute"


def written(version: int, *, final: bool = True, kind: Kind = "data", rows: bool = True) -> Commit:
    """An entry of gold's log, written ``version`` seconds after NOW."""
    file = DataFile(f"data/0-{version}-a/p", 1, 1, "{}", {"final": str(final).lower()})
    state = replace(State.empty(PATH), kind=kind)
    at = commit_time(NOW + timedelta(seconds=version))
    return Commit(version, state, (file,) if rows else (), written_at=at)


def sent(version: int) -> Commit:
    return Commit(1, State(PublicationPayload(version)), ())


def unsent(lake: Lake, when: PublishedWhen = "final") -> Unsent:
    tail = TableTail(lake.layout.storage, PATH)
    tail.poll()
    return Unsent(Publication("out", "gold", "per_minute", when, "kafka", None), tail)


def test_commits_wait_until_they_are_sent(lake: Lake) -> None:
    out = unsent(lake)
    out.take((), sent(0))
    assert (out.count, out.waiting(NOW)) == (0, 0.0)
    out.take((written(1), written(2)), sent(0))
    assert (out.count, out.waiting(NOW + timedelta(seconds=11))) == (2, 10.0)
    out.take((written(3),), sent(1))
    assert (out.count, out.waiting(NOW + timedelta(seconds=12))) == (2, 10.0)
    out.take((), sent(3))
    assert (out.count, out.waiting(NOW)) == (0, 0.0)


@pytest.mark.parametrize(
    ("commit", "final", "update"),
    [
        (written(1), 1, 1),
        (written(1, final=False), 0, 1),
        (written(1, rows=False), 0, 0),
        (written(1, kind="maintenance"), 0, 0),
        (written(1, kind="fence", rows=False), 0, 0),
    ],
    ids=["final", "open", "no rows", "maintenance", "fence"],
)
def test_only_commits_with_rows_to_send_wait(
    lake: Lake, commit: Commit, final: int, update: int
) -> None:
    for when, count in (("final", final), ("update", update)):
        out = unsent(lake, when)  # type: ignore[arg-type]
        out.take((), sent(0))
        out.take((commit,), sent(0))
        assert out.count == count


def test_after_the_log_was_replaced_only_its_commits_wait(lake: Lake) -> None:
    """A table that was put back from a copy, or made anew, has lower versions."""
    for n in (1, 2, 3):
        lake.commit(PATH, n, [{"window_start": NOON, "events": n}], {"folded": 1})
    tail = TableTail(lake.layout.storage, PATH)
    out = Unsent(Publication("out", "gold", "per_minute", "final", "kafka", None), tail)
    tail.poll()
    out.take((), sent(1))
    assert out.count == 2
    shutil.rmtree(lake.layout.storage.uri(PATH))
    Lake(Path(lake.layout.storage.root).parent, lake.pipeline)
    tail.poll()
    out.take((), sent(0))
    assert out.count == 0


def test_what_was_there_before_is_read_back(lake: Lake) -> None:
    for n in (1, 2, 3):
        lake.commit(PATH, n, [{"window_start": NOON, "events": n}], {"folded": 1})
    out = unsent(lake)
    out.take((), sent(1))
    assert out.count == 2
    assert out.waiting(time_of(0)) == 0.0


def test_a_publication_that_has_not_begun_has_nothing(lake: Lake) -> None:
    out = unsent(lake)
    out.take((written(1),), None)
    assert out.count == 0
