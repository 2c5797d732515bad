"""Damage that a driver finds when it opens its tables holds its source: the others go on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.driver import schedules
from headgate.driver.errors import DefinitionChangedError
from headgate.driver.maintaining import Maintaining
from headgate.driver.operating import requests_for_now
from headgate.driver.task import RebuildRequest
from headgate.errors import HeadgateError
from headgate.flow.publish.circuit_breaker import Breaker
from headgate.flow.sources.loading import LoadPlan
from headgate.history.loads.requests import LoadRequest
from headgate.history.maintenance.requests import (
    new_maintenance_request,
    read_answer,
    request_maintenance,
)
from headgate.history.savepoints.resets import ResetTarget
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.control.requests import send_request, waiting_requests
from headgate.lake.tables.errors import DamagedFileError, LogGapError
from tests.support.decisions import reset_to
from tests.support.failing import dying
from tests.support.fake_stages import Record, without_spark
from tests.support.lake import WIDE, Lake, declared
from tests.support.loads import begin_load
from tests.support.several_sources import TWO, ingest, land

Harm = Callable[[Path], list[Path]]
"""Returns the files of a table to be deleted."""


def log_of(table: Path) -> list[Path]:
    return sorted((table / "_delta_log").glob("*.json"))


def data(table: Path) -> list[Path]:
    return sorted(table.rglob("*.parquet"))[:1]


def entry(table: Path) -> list[Path]:
    return log_of(table)[1:2]


def end(table: Path) -> list[Path]:
    """All entries from the first batch on."""
    return log_of(table)[2:]


def first(table: Path) -> list[Path]:
    """The entry of the first batch, which adds a file."""
    return log_of(table)[2:3]


DAMAGE: dict[str, Harm] = {"file": data, "entry": entry, "end": end, "log": log_of}
ALTERED = {"altered": first}
ADDED = re.compile('^{"add":.*\n', re.MULTILINE)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """Both sources have invalid, late and good rows. A driver that was killed has left ``orders``
    with a batch that only bronze has."""
    with without_spark():
        lake = Lake(declared(tmp_path, TWO), tmp_path / "lake")
        for source in ("orders", "clicks"):
            land(lake, source, [Record(), Record(bad=True), Record(late=True)])
            ingest(lake, source)
        lake.catch_up()
        land(lake, "orders", [Record(minute=1)])
        ingest(lake, "orders")
        yield lake


@contextmanager
def harmed(lake: Lake, path: str, how: str) -> Iterator[None]:
    """A table is damaged, and repaired at the end."""
    gone = {f: f.read_bytes() for f in (DAMAGE | ALTERED)[how](folder(lake, path))}
    assert gone
    for file, content in gone.items():
        file.unlink()
        if how == "altered":
            file.write_text(ADDED.sub("", content.decode()))
    yield
    for file, content in gone.items():
        file.write_bytes(content)


def folder(lake: Lake, path: str) -> Path:
    return lake.root / lake.pipeline.name / path


def files_in(lake: Lake, path: str) -> list[str]:
    return sorted(str(f) for f in folder(lake, path).rglob("*") if f.is_file())


def n(lake: Lake, path: str) -> int:
    return lake.runtime.table(path).reader().refresh().n


def go_on(lake: Lake, *sources: str) -> None:
    """A batch of each of some sources."""
    for source in sources:
        land(lake, source, [Record(minute=3), Record(minute=3)])
        ingest(lake, source)
    lake.catch_up()


def is_level(lake: Lake, source: str) -> bool:
    tables = {"orders": ("paid", "orders"), "clicks": ("seen", "clicks")}[source]
    paths = (f"silver/{tables[0]}", f"gold/{tables[1]}_per_minute")
    return {n(lake, path) for path in paths} == {n(lake, f"bronze/{source}")}


OF_BRONZE = ("bronze/clicks", "_headgate/files/clicks")
OF_STAGES = ("quarantine/clicks", "silver/seen", "late/clicks_per_minute", "gold/clicks_per_minute")
CASES = [(path, how) for path in (*OF_BRONZE, *OF_STAGES) for how in DAMAGE]
UNSEEN = {(path, how) for path in OF_STAGES[-1:] for how in ("end", "log")}
"""Nobody has followed the end of a gold log that is not published: it is made again."""


@pytest.mark.parametrize(("path", "how"), [case for case in CASES if case not in UNSEEN])
def test_the_source_of_a_damaged_table_is_held(lake: Lake, path: str, how: str) -> None:
    with harmed(lake, path, how):
        before = files_in(lake, path)
        lake.start()
        (held,) = lake.runtime.held.items()
        assert held[0] == "clicks"
        assert held[1].error.exit_code == 5
        assert path in held[1].error.message
        reads = ["orders"] if path in OF_BRONZE else ["orders", "clicks"]
        assert [*lake.runtime.readable] == reads
        go_on(lake, *reads)
        assert is_level(lake, "orders")
        assert files_in(lake, path) == before or how == "file"
        assert path in lake.runtime.damaged
        assert path.startswith("gold") or n(lake, "gold/clicks_per_minute") == 1
    lake.start()
    assert lake.runtime.held == {}
    go_on(lake, "orders", "clicks")
    assert is_level(lake, "orders")
    assert is_level(lake, "clicks")
    assert balance(lake.layout, lake.pipeline).differences == ()
    assert by_id(lake.layout, lake.pipeline).findings == ()


@pytest.mark.parametrize("layers", [["bronze"], ["silver"], ["gold"]])
def test_a_job_of_one_layer_is_held_by_what_it_depends_on(lake: Lake, layers: list[str]) -> None:
    with harmed(lake, "silver/seen", "end"):
        lake.start(layers)
        assert [*lake.runtime.held] == ([] if layers == ["bronze"] else ["clicks"])
        lake.catch_up()


def test_damage_of_all_sources_ends_the_driver(lake: Lake) -> None:
    with (
        harmed(lake, "silver/seen", "end"),
        harmed(lake, "gold/orders_per_minute", "file"),
        pytest.raises(HeadgateError, match="source clicks: .*\nsource orders: ") as error,
    ):
        lake.start()
    assert error.value.exit_code == 5


@pytest.mark.parametrize("how", ["entry", "end"])
def test_damage_of_the_decisions_ends_the_driver(lake: Lake, how: str) -> None:
    lake.drain()
    lake.drain()
    with harmed(lake, "_headgate/control/decisions", how), pytest.raises(LogGapError):
        lake.start()


@pytest.mark.parametrize(("how", "raised"), [("file", DamagedFileError), ("entry", LogGapError)])
def test_damage_of_an_only_source_ends_the_driver(
    tmp_path: Path, how: str, raised: type[HeadgateError]
) -> None:
    with without_spark():
        lake = Lake(declared(tmp_path, WIDE), tmp_path / "lake")
        lake.land([Record()])
        lake.ingest()
        lake.catch_up()
        with harmed(lake, "silver/good", how), pytest.raises(raised):
            lake.start()


def test_a_rebuild_that_is_asked_for_needs_sound_tables(lake: Lake) -> None:
    lake.anew = RebuildRequest(("gold/orders_per_minute",))
    for how, raised in (("end", LogGapError), ("file", DamagedFileError)):
        with harmed(lake, "silver/seen", how), pytest.raises(raised):
            lake.start()


def test_damage_ends_the_driver_while_a_reset_is_open(lake: Lake) -> None:
    """The tables of a reset go back together."""
    lake.start()
    tables = {path: ResetTarget() for path in ("late/orders_per_minute", "gold/orders_per_minute")}
    reset_to(lake.runtime.control, tables, lake.clock())
    for how in ("end", "entry"):
        with harmed(lake, "silver/seen", how):
            before = files_in(lake, "")
            with pytest.raises(LogGapError):
                lake.start()
            assert files_in(lake, "") == before
    with harmed(lake, "silver/seen", "altered"), pytest.raises(LogGapError, match="differ"):
        lake.start()
    lake.start()
    assert lake.runtime.held == {}


def test_a_source_of_another_name_is_refused_beside_damage(lake: Lake, tmp_path: Path) -> None:
    with harmed(lake, "bronze/clicks", "entry"):
        lake.start()
    renamed = TWO.replace("orders", "buys").replace("clicks", "taps")
    lake.pipeline = declared(tmp_path / "renamed", renamed)
    with pytest.raises(DefinitionChangedError):
        lake.start()


def drain_and_replay(lake: Lake) -> None:
    """Requests of an operation on all tables, and of one on a table of ``orders``."""
    send_request(lake.layout, "drain", {}, lake.clock())
    everything: dict[str, Any] = {"from": None, "to": None, "keys": {}}
    replay = {"table": "orders_per_minute", **everything}
    send_request(lake.layout, "late_replay", replay, lake.clock())


def kinds(lake: Lake) -> list[str]:
    return [each.kind for each in waiting_requests(lake.layout)]


def test_an_operation_waits_that_touches_tables_of_a_damaged_bronze(lake: Lake) -> None:
    """It would have no place among the batches of the source, and be left out there for ever."""
    with harmed(lake, "bronze/clicks", "entry"):
        lake.start()
        drain_and_replay(lake)
        lake.take_in()
        assert kinds(lake) == ["drain"]
        (replay,) = lake.decisions().operations
        assert [*replay.position] == ["orders"]
        assert requests_for_now(lake.layout, lake.runtime) == ()
    lake.start()
    lake.take_in()
    assert kinds(lake) == []
    assert [each.n for each in lake.operations("clicks")] == [1]
    assert lake.runtime.table("gold/clicks_per_minute").refresh().operation == 2
    assert by_id(lake.layout, lake.pipeline).findings == ()


def test_a_held_table_carries_an_operation_out_once_it_is_repaired(lake: Lake) -> None:
    """Gold has batches that silver lacks: an operation before them has to wait."""
    gold = "gold/clicks_per_minute"
    with harmed(lake, "silver/seen", "end"):
        lake.start()
        send_request(lake.layout, "drain", {}, lake.clock())
        lake.take_in()
        assert kinds(lake) == []
        assert lake.runtime.table("gold/orders_per_minute").refresh().operation == 1
        assert lake.runtime.table(gold).refresh().operation == 0
        go_on(lake, "clicks")
    lake.start()
    lake.catch_up()
    assert lake.runtime.table(gold).refresh().operation == 1
    assert [each.n for each in lake.operations("clicks")] == [1]
    assert by_id(lake.layout, lake.pipeline).findings == ()


def test_no_savepoint_is_taken_of_a_truncated_table(lake: Lake) -> None:
    """From such a savepoint, gold would be ahead of silver."""
    with harmed(lake, "silver/seen", "end"):
        lake.start()
        with pytest.raises(LogGapError, match="silver/seen"):
            lake.savepoint()
    lake.start()
    lake.savepoint()


def is_rebuilding(lake: Lake) -> bool:
    return lake.runtime.rebuild is not None


def test_a_rebuild_is_not_published_while_one_of_its_tables_is_held(lake: Lake) -> None:
    lake.catch_up()
    lake.anew = RebuildRequest(("gold/clicks_per_minute", "gold/orders_per_minute"))
    lake.start()
    with dying("rebuild.ready"):
        lake.catch_up()
    lake.anew = RebuildRequest()
    with harmed(lake, "silver/seen", "end"):
        lake.start()
        go_on(lake, "orders", "clicks")
        assert is_rebuilding(lake)
        assert is_level(lake, "orders")
    lake.start()
    lake.catch_up()
    assert not is_rebuilding(lake)
    assert is_level(lake, "clicks")
    assert by_id(lake.layout, lake.pipeline).findings == ()


def test_the_loads_of_other_sources_are_read(lake: Lake) -> None:
    """A load ends with late rows in gold: bronze's job asks whether gold has them."""
    plan = LoadPlan({}, {"0": 1}, "a test", "bytes")
    with harmed(lake, "gold/clicks_per_minute", "entry"):
        lake.start(["bronze"])
        for source, is_open in (("clicks", False), ("orders", True)):
            load = LoadRequest(source, source, plan, "a test", lake.clock())
            begin_load(lake.layout, lake.pipeline.name, load)
            lake.runtime.control.refresh()
            assert lake.loading().is_open() is is_open
    lake.start()


def test_late_rows_of_other_sources_are_replayed_on_schedule(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = "allowed_lateness: 0 seconds\n    late: {replay_every: 1 hour, within: 10 days}"
    pipeline = declared(tmp_path / "scheduled", TWO.replace("allowed_lateness: 0 seconds", late))
    looked_at = list[str]()
    monkeypatch.setattr(schedules, "is_replay_due", lambda name, *_: looked_at.append(name))
    with harmed(lake, "gold/orders_per_minute", "entry"):
        scheduled = schedules.ScheduledLateReplays(lake.layout, pipeline)
        scheduled.run_due(lake.clock())
        assert looked_at == ["clicks_per_minute"]
        assert "gold/orders_per_minute" in (scheduled.trouble or "")


def test_publications_of_other_sources_are_sent(lake: Lake, tmp_path: Path) -> None:
    """The circuit breaker, which looks at all sources, leaves the held one out."""
    breaks = f"circuit_breaker: {{records_below: 1, batches: 1}}\n{TWO.lstrip()}"
    pipeline = declared(tmp_path / "breaking", breaks)
    with harmed(lake, "silver/seen", "entry"):
        lake.start()
        with pytest.raises(LogGapError):
            Breaker(lake.layout, pipeline).why_open()
        without = lake.runtime.damaged.sources
        assert Breaker(lake.layout, pipeline, without=without).why_open() is None


def test_maintenance_is_refused_beside_damage(lake: Lake) -> None:
    """It could remove the files of entries that are lost and come back from a backup."""
    with harmed(lake, "silver/seen", "end"):
        lake.start()
        owned, require_sound = lake.runtime.owned(), lake.runtime.damaged.require_none
        place = lake.layout, lake.pipeline, "fused", owned
        maintaining = Maintaining(*place, lambda _: nullcontext(), 1, lake.clock, require_sound)
        request = new_maintenance_request("vacuum", timedelta(), 1)
        request_maintenance(lake.layout, request)
        maintaining.step()
        answer = read_answer(lake.layout, "fused", request)
        assert answer is not None
        assert (answer.is_done, answer.exit_code) == (True, 5)
        assert "silver/seen" in (answer.error or "")
