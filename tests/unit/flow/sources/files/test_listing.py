"""Which files of a listing are recorded, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headgate.flow.sources.files.changes import FileChange
from headgate.flow.sources.files.declared import FileOrder
from headgate.flow.sources.files.listing import LARGEST_FILE, LandingListing, examine
from headgate.flow.sources.files.log import LoggedFile
from headgate.lake.storage.files import Stat

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
SETTLE = timedelta(seconds=10)
MOMENT = timedelta(microseconds=1)


def stat(path: str, age: timedelta = SETTLE, size: int = 1) -> Stat:
    return Stat(path, size, NOW - age)


def logged(stat: Stat) -> LoggedFile:
    return LoggedFile(1, stat.path, stat.size, stat.modified, stat.modified)


def listed(
    *found: Stat, recorded: tuple[Stat, ...] = (), before: tuple[Stat, ...] = ()
) -> LandingListing:
    return examine(
        found,
        {each.path: logged(each) for each in recorded},
        {each.path: each for each in before},
        now=NOW,
        settle=SETTLE,
        order="name",
    )


def test_a_file_is_ready_once_it_has_not_changed_for_so_long() -> None:
    ready, young = stat("a"), stat("b", SETTLE - MOMENT)
    assert listed(ready, young) == LandingListing((ready,), {"b": young}, (), ())
    # An earlier listing of the file does not show how long it has been unchanged.
    assert listed(young, before=(young,)).settling == {"b": young}


def test_a_file_of_the_future_is_ready_when_two_listings_are_equal() -> None:
    ahead = stat("a", -timedelta(hours=1))
    assert listed(ahead).settling == {"a": ahead}
    assert listed(ahead, before=(stat("a", -timedelta(hours=1), size=2),)).ready == ()
    assert listed(ahead, before=(ahead,)).ready == (ahead,)


@pytest.mark.parametrize("other", [stat("a", size=2), stat("a", SETTLE + MOMENT)])
def test_a_recorded_file_is_not_recorded_again(other: Stat) -> None:
    assert listed(stat("a"), recorded=(stat("a"),)) == LandingListing((), {}, (), ())
    changes = (FileChange(logged(stat("a")), other),)
    assert listed(other, recorded=(stat("a"),)) == LandingListing((), {}, changes, ())


def test_a_file_with_more_positions_than_offsets_can_express_is_not_read() -> None:
    largest, larger = stat("a", size=LARGEST_FILE - 1), stat("b", size=LARGEST_FILE)
    assert listed(largest, larger) == LandingListing((largest,), {}, (), (larger,))
    young = stat("b", timedelta(), size=LARGEST_FILE)
    assert listed(young).too_large == (young,)


@pytest.mark.parametrize(
    ("order", "expected"), [("name", ["a", "b", "c"]), ("modified", ["c", "a", "b"])]
)
def test_files_have_one_order_however_they_are_listed(
    order: FileOrder, expected: list[str]
) -> None:
    files = [stat("b"), stat("c", 2 * SETTLE), stat("a")]
    for found in (files, files[::-1]):
        ready = examine(found, {}, {}, now=NOW, settle=SETTLE, order=order).ready
        assert [each.path for each in ready] == expected
