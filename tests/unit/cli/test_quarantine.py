"""`headgate quarantine`: what is refused before a table is read, and taking a replay back."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.cli.quarantine import replaying, verbs
from headgate.flow.bronze.copies import CorrectedCopies
from headgate.history.replay import requests
from headgate.history.replay.refused import (
    RefusedGroup,
    RefusedRecord,
    RefusedRecords,
    RefusedSelection,
)
from headgate.history.replay.requests import ReplayDocument
from headgate.lake.control.requests import Request, remove_request
from headgate.lake.tables.decisions import REPLAY, position_of
from headgate.lake.tables.table import Table
from tests.support.decisions import append, control_of
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake

OfLake = tuple[str, str, str]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def wait(lake: Lake, id_: str = "r1") -> Request:
    document = ReplayDocument("events", 0, 0, 3, "a test")
    return requests.request_replay(lake.layout, id_, document, pa.table({"value": [b"x"]}), NOW)


def carry_out(lake: Lake, request: Request) -> None:
    """Carry out a request like a driver that is killed before it removes the request."""
    bronze = Table(lake.layout.storage, "bronze/events", pipeline=lake.pipeline.name)
    held, control = bronze.refresh(), control_of(lake.layout.storage, lake.pipeline.name)
    at = position_of({"events": bronze})
    decision = append(control, REPLAY, request.document, at, NOW, request=request.id)
    done = replace(held.advanced_to(held.n + 1, NOW), operation=decision.number)
    bronze.commit(done.counting({}))


def test_a_replay_that_waits_is_taken_back(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    request = wait(lake)
    code, out, _ = ask("quarantine", "cancel", *of_lake, "--json")
    assert (code, last_object(out)["cancelled"]) == (0, "r1")
    assert not lake.layout.storage.exists(request.path)
    code, _, err = ask("quarantine", "cancel", *of_lake)
    assert (code, "no replay waits" in err) == (1, True)


def test_a_replay_that_bronze_has_is_not_taken_back(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    carry_out(lake, wait(lake))
    code, out, err = ask("quarantine", "cancel", *of_lake)
    assert (code, out) == (1, "")
    assert "3 records cannot be taken back: it was carried out as batch 3" in err
    assert requests.waiting_replay(lake.layout) is None


def test_only_the_request_that_is_done_is_removed(lake: Lake) -> None:
    first = wait(lake)
    remove_request(lake.layout, first)
    second = wait(lake, "r2")
    remove_request(lake.layout, first)
    assert requests.waiting_replay(lake.layout) == second


@pytest.mark.parametrize("is_decided_before", [False, True])
def test_a_replay_during_the_validation_of_another_makes_it_void(
    lake: Lake, is_decided_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both correct the same records. The first may be decided, but not in bronze, when the second
    one reads the tables."""
    monkeypatch.setattr(RefusedRecords, "_quarantine", lambda _: "SELECT 1")
    first = wait(lake)
    if is_decided_before:
        bronze = Table(lake.layout.storage, "bronze/events", pipeline=lake.pipeline.name)
        control = control_of(lake.layout.storage, lake.pipeline.name)
        at = position_of({"events": bronze})
        append(control, REPLAY, first.document, at, NOW, request=first.id)
    source = lake.pipeline.sources["events"]
    records = RefusedRecords(lake.layout, lake.pipeline, source)
    if not is_decided_before:
        carry_out(lake, first)
    remove_request(lake.layout, first)
    copies = CorrectedCopies(source, pa.table({"value": [b"x"]}))
    second = replaying._ask(lake.layout, records, copies, "")
    decisions = control_of(lake.layout.storage, lake.pipeline.name).refresh()
    assert ReplayDocument.of(second).is_void(decisions)


@pytest.mark.parametrize(
    "time", ["", "yesterday", "999999 days", "9999-12-31T23:59-12:00", "12:00", "1.5 hours"]
)
def test_a_time_that_is_none(ask: Ask, of_lake: OfLake, lake: Lake, time: str) -> None:
    code, _, err = ask("quarantine", "list", *of_lake, "--since", time)
    assert code == 2
    assert "neither a time" in err


def test_a_reason_that_is_none(ask: Ask, of_lake: OfLake, lake: Lake) -> None:
    for verb in (["show"], ["list"], ["replay", "--dry-run"], ["export", "-o", "new"]):
        code, out, err = ask("quarantine", *verb, *of_lake, "--reason", "wrong_typ")
        assert (code, out) == (2, "")
        assert "there is no reason 'wrong_typ' (did you mean \"wrong_type\"?)\n" in err
        assert "there are: tombstone, unparsable, " in err
        assert "; a rule's id is for --rule\n" in err


@dataclass(frozen=True)
class Bronze:
    n: int


class Records:
    """Refused records in these groups; a filter by rule matches none."""

    def __init__(self, lake: Lake, *groups: RefusedGroup) -> None:
        self.source = lake.pipeline.sources["events"]
        self.bronze, self.behind = Bronze(5), list[str]()
        self._groups = groups

    def groups(self, wanted: RefusedSelection) -> list[RefusedGroup]:
        return [] if wanted.rule else list(self._groups)

    def rows(self, *_: object) -> list[object]:
        return []


@pytest.mark.parametrize("verb", [["show"], ["list"], ["replay", "--dry-run"]])
def test_a_filter_that_matches_nothing_says_what_there_is(
    ask: Ask, of_lake: OfLake, lake: Lake, monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    wrong = RefusedGroup("quarantine", "wrong_type", 2, 0, NOW)
    found = Records(lake, wrong, RefusedGroup("rejected.good", "sane", 1, 0, NOW))
    for module in (verbs, replaying):
        monkeypatch.setattr(module, "records_of", lambda *_: found)
    monkeypatch.setattr(replaying, "require_machine", lambda _: None)
    code, out, _ = ask("quarantine", *verb, *of_lake, "--rule", "nope")
    assert code == 0
    assert "record matches --rule nope; there are some with: " in out
    assert "wrong_type (quarantine), sane (rejected.good)" in out
    for module in (verbs, replaying):
        monkeypatch.setattr(module, "records_of", lambda *_: Records(lake))
    out = ask("quarantine", *verb, *of_lake, "--rule", "nope")[1]
    assert out in ("no open record is refused\n", "no record was refused\n")


def test_a_table_that_has_no_refused_records(ask: Ask, of_lake: OfLake, lake: Lake) -> None:
    code, _, err = ask("quarantine", "show", *of_lake, "--table", "rejected.good")
    assert (code, "there are: quarantine\n" in err) == (2, True)
    assert "tiny has no refused records in a table 'rejected.good'" in err


def test_a_file_is_never_replaced(ask: Ask, of_lake: OfLake, lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    code, _, err = ask("quarantine", "export", *of_lake, "--output", tmp_path / "mine")
    assert (code, "exists, and is not overwritten" in err) == (2, True)
    assert (tmp_path / "mine").read_text() == "mine"


def test_the_list_says_which_tables_may_not_know_a_replay_yet(
    ask: Ask, of_lake: OfLake, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Records(lake, RefusedGroup("rejected.good", "sane", 1, 0, NOW))
    monkeypatch.setattr(verbs, "records_of", lambda *_: found)
    assert "not yet processed" not in ask("quarantine", "list", *of_lake)[1]
    found.behind = ["silver.good"]
    out = ask("quarantine", "list", *of_lake)[1]
    assert "not yet processed up to batch 5: silver.good\n" in out
    document = last_object(ask("quarantine", "list", *of_lake, "--json")[1])
    assert (document["n"], document["behind"]) == (5, ["silver.good"])


def test_a_replay_is_done_once_silver_has_it(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silver says which rejected rows were replaced."""
    monkeypatch.setattr(replaying, "PATIENCE", 0.0)
    n, source = lake.table("silver/good").refresh().n, lake.pipeline.sources["events"]
    assert replaying._await_silver(lake.pipeline, lake.layout, source, n) == []
    assert replaying._await_silver(lake.pipeline, lake.layout, source, n + 1) == ["silver/good"]
    monkeypatch.setattr(replaying, "PATIENCE", 60.0)
    monkeypatch.setattr(
        time, "sleep", lambda _: lake.commit("silver/good", n + 1, [], {"silver": 0})
    )
    assert replaying._await_silver(lake.pipeline, lake.layout, source, n + 1) == []


def test_a_long_value_lengthens_no_other_line(
    ask: Ask, of_lake: OfLake, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        RefusedRecord(
            "quarantine", 0, number, None, None, ["wrong_type"], None, None, "f", NOW, value, True
        )
        for number, value in enumerate((b"x" * 800, b"y"))
    ]
    found = Records(lake)
    monkeypatch.setattr(found, "rows", lambda *_: rows)
    monkeypatch.setattr(verbs, "records_of", lambda *_: found)
    lines = ask("quarantine", "show", *of_lake)[1].splitlines()
    assert len(max(lines, key=len)) > 800
    assert sorted(map(len, lines))[-2] < 100
