"""Days, weeks and months of time zones, without Spark: their boundaries, and the rules of zones."""

from __future__ import annotations

import random
import shutil
import zoneinfo
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import pytest

from headgate.declaration.plan import describe
from headgate.flow.gold.operators.calendar import zones
from headgate.flow.gold.operators.calendar.boundaries import UNITS, Unit, boundaries
from headgate.flow.gold.operators.calendar.zones import (
    CYCLE,
    nearest_zone,
    rules_of,
    zone_names,
)
from tests.oracle.calendar import clocks, window_of
from tests.support.operators import declared

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
ZONES = (
    *("UTC", "Europe/Berlin", "America/Havana", "Asia/Beirut", "America/Sao_Paulo"),
    *("Africa/Cairo", "Africa/Casablanca", "America/St_Johns", "Pacific/Apia", "Asia/Gaza"),
    *("Australia/Lord_Howe", "Asia/Kathmandu", "America/Scoresbysund"),
)
BERLIN = "window: {calendar: {unit: day, zone: Europe/Berlin}}\n    allowed_lateness: 10 s"


def seconds(time: datetime) -> int:
    return (time - EPOCH) // SECOND


def window(time: datetime, unit: Unit, zone: str) -> tuple[datetime, datetime]:
    begin, end = boundaries(unit, zone).around(seconds(time))
    return EPOCH + begin * SECOND, EPOCH + end * SECOND


@pytest.fixture
def _fresh() -> Iterator[None]:
    """No rules are known before and after the test."""
    known = rules_of, boundaries
    for each in known:
        each.cache_clear()
    yield
    for each in known:
        each.cache_clear()


@pytest.mark.parametrize(
    ("unit", "zone", "within", "begin", "hours"),
    [
        ("day", "Europe/Berlin", "2026-03-28T22:59:59Z", "2026-03-27T23:00Z", 24),
        ("day", "Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-28T23:00Z", 23),
        ("day", "Europe/Berlin", "2026-03-29T22:00:00Z", "2026-03-29T22:00Z", 24),
        ("day", "Europe/Berlin", "2026-10-25T22:59:59Z", "2026-10-24T22:00Z", 25),
        # The clocks skip midnight: the day begins at 01:00.
        ("day", "America/Sao_Paulo", "2018-11-04T03:00:00Z", "2018-11-04T03:00Z", 23),
        ("day", "America/Sao_Paulo", "2018-11-04T02:59:59Z", "2018-11-03T03:00Z", 24),
        ("day", "Asia/Beirut", "2024-03-31T12:00:00Z", "2024-03-30T22:00Z", 23),
        ("day", "Africa/Cairo", "2024-04-26T12:00:00Z", "2024-04-25T22:00Z", 23),
        # The clocks show the hour from midnight on twice.
        ("day", "America/Havana", "2025-11-02T05:30:00Z", "2025-11-02T04:00Z", 25),
        # The clocks go back from midnight to 23:00 of the same day.
        ("day", "America/Sao_Paulo", "2018-02-18T02:30:00Z", "2018-02-17T02:00Z", 25),
        # The clocks go back from 00:01 of the day to 23:01 of the day before: the day has begun.
        ("day", "America/St_Johns", "2005-10-30T02:31:00Z", "2005-10-30T02:30Z", 25),
        ("day", "America/St_Johns", "2005-10-30T02:29:59Z", "2005-10-29T02:30Z", 24),
        # The clocks skip 2011-12-30.
        ("day", "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T10:00Z", 24),
        ("day", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00Z", 24),
        ("week", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-26T10:00Z", 6 * 24),
        # 2026-03-23 is a Monday.
        ("week", "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-22T23:00Z", 7 * 24 - 1),
        ("week", "UTC", "1970-01-01T00:00:00Z", "1969-12-29T00:00Z", 7 * 24),
        ("month", "Europe/Berlin", "2026-03-01T00:00:00Z", "2026-02-28T23:00Z", 31 * 24 - 1),
        ("month", "Europe/Berlin", "2024-02-29T22:59:59Z", "2024-01-31T23:00Z", 29 * 24),
        ("month", "UTC", "2026-12-31T23:59:59Z", "2026-12-01T00:00Z", 31 * 24),
    ],
)
def test_windows(unit: Unit, zone: str, within: str, begin: str, hours: int) -> None:
    start = datetime.fromisoformat(begin)
    expected = (start, start + hours * HOUR)
    assert window(datetime.fromisoformat(within), unit, zone) == expected
    assert window_of(datetime.fromisoformat(within), unit, zone) == expected, "the definition"


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_windows_follow_the_definition(zone: str) -> None:
    chance = random.Random(zone)
    first, last = (seconds(datetime(year, 1, 1, tzinfo=UTC)) for year in (1973, 2040))
    recent = [change for change in rules_of(zone).changes if first < change < last]
    around = [each + shift for each in recent for shift in (-5400, -1, 0, 1, 5400)]
    some = chance.sample(around, min(len(around), 60))
    for at in [*some, *(chance.randrange(first, last) for _ in range(40))]:
        time = EPOCH + at * SECOND
        for unit in UNITS:
            assert window(time, unit, zone) == window_of(time, unit, zone), (time, unit)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Africa/Casablanca", "Pacific/Auckland"])
@pytest.mark.parametrize("unit", UNITS)
def test_the_rules_hold_in_all_years(unit: Unit, zone: str) -> None:
    for year in (2099, 2100, 2400, 2499, 2500, 2501, 2900, 5000, 9988):
        for month in (3, 6, 12):
            time = datetime(year, month, 27, 23, 30, tzinfo=UTC)
            assert window(time, unit, zone) == window_of(time, unit, zone)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Juneau", "Asia/Manila"])
@pytest.mark.parametrize("unit", UNITS)
def test_windows_follow_each_other_without_gaps(unit: Unit, zone: str) -> None:
    """Also where boundaries begin to be listed, and before: the clocks then showed the time of the
    sun, in seconds."""
    found = boundaries(unit, zone)
    most = {"day": 49, "week": 8 * 24 + 1, "month": 32 * 24 + 1}[unit] * 3600
    places = (found.low, found.low - CYCLE, found.low - 3 * CYCLE, found.high, found.high + CYCLE)
    for start in (*places, *found.starts[:3], *found.starts[-3:]):
        begin, end = found.around(start - 70 * 86_400)
        while begin < start + 70 * 86_400:
            assert 0 < end - begin <= most
            assert found.around(begin) == found.around(end - 1) == (begin, end)
            next_begin, next_end = found.around(end)
            assert next_begin == end
            begin, end = next_begin, next_end


@pytest.mark.slow
def test_the_rules_of_every_zone_are_those_of_zoneinfo() -> None:
    chance = random.Random(7)
    for zone in sorted(zone_names()):
        rules, known = rules_of(zone), clocks(zone)
        changes = chance.sample(rules.changes, min(len(rules.changes), 100))
        at_changes = [change + shift for change in changes for shift in (-1, 0)]
        any_time = [chance.randrange(-5 * 10**9, rules.settled + CYCLE) for _ in range(200)]
        for time in [*at_changes, *any_time]:
            ahead = (EPOCH + time * SECOND).astimezone(known).utcoffset()
            offset = rules.offsets[bisect_right(rules.changes, time)]
            assert offset * SECOND == ahead, (zone, time)


def replaced(folder: Path, zone: str, other: str) -> Path:
    """A folder of zones in which ``zone`` has the rules of ``other``."""
    source = Path(str(resources.files("tzdata"))) / "zoneinfo"
    for name, rules in ((zone, other), ("UTC", "UTC")):
        (folder / "zoneinfo" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / rules, folder / "zoneinfo" / name)
    return folder


@pytest.mark.usefixtures("_fresh")
def test_the_files_of_the_machine_do_not_count(tmp_path: Path) -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    zoneinfo.reset_tzpath([str(replaced(tmp_path, "Europe/Berlin", "Asia/Tokyo") / "zoneinfo")])
    try:
        there = zoneinfo.ZoneInfo.no_cache("Europe/Berlin")
        assert noon.astimezone(there).utcoffset() == 9 * HOUR
        assert window(noon, "day", "Europe/Berlin")[0] == noon - 13 * HOUR
    finally:
        zoneinfo.reset_tzpath()


@pytest.mark.usefixtures("_fresh")
def test_the_rules_are_a_part_of_what_a_table_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = declared(BERLIN).definitions
    folder = replaced(tmp_path, "Europe/Berlin", "Europe/Moscow")
    # Not the name: a renamed zone has the same rows.
    (folder / "zones").write_text("Europe/Berlin\nUTC\n")
    monkeypatch.setattr(zones, "files", lambda _: folder)
    rules_of.cache_clear()
    after = declared(BERLIN).definitions
    assert {path for path in before if before[path] != after[path]} == {
        "gold/results",
        "late/results",
    }


def test_a_zone_that_was_renamed_means_the_same() -> None:
    old, new = (declared(BERLIN.replace("Europe/Berlin", f"Europe/{n}")) for n in ("Kiev", "Kyiv"))
    assert old.definitions == new.definitions
    assert rules_of("Europe/Kyiv").digest != rules_of("Europe/Berlin").digest


def test_the_plan_names_the_rules() -> None:
    said = describe(declared(BERLIN))
    rules = f"by the rules {rules_of('Europe/Berlin').digest} (tzdata {zones.release()})"
    assert f"  window   calendar day in Europe/Berlin {rules}, 10 seconds allowed lateness" in said


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("Port of Spain", "America/Port_of_Spain"),
        ("x", None),
    ],
)
def test_the_nearest_zone(text: str, zone: str | None) -> None:
    assert nearest_zone(text) == zone
