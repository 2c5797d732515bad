"""What `headgate backfill` prints, and its exit codes; the computation itself is not run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.cli import requesting
from headgate.cli.backfill import computing, verb
from headgate.cli.backfill.computing import publish_here, require_expected
from headgate.errors import HeadgateError
from headgate.flow.gates import documents
from headgate.flow.gates.documents import Hold
from headgate.flow.operations.backfill import Patch
from headgate.history.backfill.report import (
    BackfillReport,
    PublishedBackfill,
    TableReport,
    write_report,
)
from headgate.history.backfill.running import BackfillOutcome, BackfillScope
from headgate.history.savepoints.resets import ResetTarget
from headgate.history.savepoints.store import savepoints
from headgate.lake.control.requests import remove_request, waiting_requests
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.table import Table
from tests.support.decisions import append, at, reset_to
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import SCHEMAS, Lake

OfLake = tuple[str, str, str]
Given = Callable[..., None]
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
TABLE = TableReport("per_minute", 1, 0, 0, 0, 0, 0, 0, "0-00", "0-00")
GOLD = pa.schema(
    [
        ("window_start", pa.timestamp("us", "UTC")),
        ("window_end", pa.timestamp("us", "UTC")),
        ("events", pa.int64()),
        ("final", pa.bool_()),
    ]
)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Given:
    """Sets the result of the computation."""

    def give(table: TableReport, published: PublishedBackfill | None = None) -> None:
        report = BackfillReport("b1", "tiny", NOON, NOON, None, "digest", (table,), published)
        outcome = BackfillOutcome(report, {}, 0)

        def compute_here(
            *_: object, check: Callable[[BackfillReport], None], **__: object
        ) -> BackfillOutcome:
            check(report)
            return outcome

        monkeypatch.setattr(verb, "compute_here", compute_here)
        monkeypatch.setattr(verb, "send_backfill", lambda *_: None)

    return give


def with_a_window(lake: Lake) -> None:
    table = Table(lake.layout.storage, "gold/per_minute", pipeline="tiny")
    shutil.rmtree(lake.layout.storage.uri("gold/per_minute"))
    table.create(GOLD, lake.pipeline.definitions["gold/per_minute"], time_column="window_start")
    held = table.refresh()
    state = replace(held, kind="data", from_n=0, n=1, at=1)
    rows = [{"window_start": NOON, "window_end": NOON + timedelta(minutes=1), "events": 2}]
    content = pa.Table.from_pylist(rows, pa.schema([*GOLD][:3]))
    staged = stage_arrow(table, state, content, time_column="window_start")
    table.commit(state, add=tuple(replace(each, partition={"final": "true"}) for each in staged))


@pytest.mark.parametrize("options", [["--verify"], []])
def test_a_range_without_a_final_window_is_not_equal(
    ask: Ask, empty_lake: Lake, of_lake: OfLake, found: Given, options: list[str]
) -> None:
    with_a_window(empty_lake)
    found(TABLE)
    code, out, _ = ask("backfill", *of_lake, "--from", "2026-05-05", *options)
    assert code == 1
    assert "is equal" not in out
    assert "gold.per_minute has no final window in this range: nothing was compared" in out
    assert "final windows are from 2026-05-04 12:00:00Z to 2026-05-04 12:01:00Z" in out
    code, out, _ = ask("backfill", *of_lake, "--from", "2026-05-05", "--json", *options)
    assert (code, last_object(out)["result"]) == (1, "empty")


def test_a_plan_without_a_final_window_has_the_code_of_a_report_without(
    ask: Ask, empty_lake: Lake, of_lake: OfLake
) -> None:
    with_a_window(empty_lake)
    code, out, _ = ask("backfill", *of_lake, "--from", "9999-01-01", "--dry-run")
    assert code == 1
    assert "gold.per_minute has no final window in this range" in out
    assert ask("backfill", *of_lake, "--from", "2026-05-01", "--dry-run")[0] == 0


def test_windows_can_be_selected_by_their_end(ask: Ask, empty_lake: Lake, of_lake: OfLake) -> None:
    """The only window is from 12:00 to 12:01."""
    with_a_window(empty_lake)
    times = ("--from", "2026-05-04 12:00:30", "--to", "2026-05-04 12:01")
    assert ask("backfill", *of_lake, *times, "--dry-run")[0] == 1
    code, out, _ = ask("backfill", *of_lake, *times, "--dry-run", "--by-end")
    assert code == 0
    assert "windows that end after 2026-05-04T12:00:30+00:00 and up to 2026-05-04T12:01" in out
    document = last_object(ask("backfill", *of_lake, *times, "--dry-run", "--by-end", "--json")[1])
    assert document["by_end"] is True
    assert document["tables"][0]["windows"] == 1
    begins = ("--from", "2026-05-04 12:01", "--to", "2026-05-04 13:00", "--dry-run")
    assert ask("backfill", *of_lake, *begins, "--by-end")[0] == 1
    longest = ("--from", "0001-01-01", "--dry-run", "--by-end")
    assert ask("backfill", *of_lake, *longest)[0] == 0
    assert ask("backfill", *of_lake, "--by-end")[0] == 2


def test_a_backfill_by_end_is_listed_as_such(ask: Ask, empty_lake: Lake, of_lake: OfLake) -> None:
    report = BackfillReport("b1", "tiny", NOON, NOON, None, "digest", (TABLE,))
    write_report(empty_lake.layout, report)
    write_report(empty_lake.layout, replace(report, id="b2", by_end=True))
    _, out, _ = ask("backfill", *of_lake)
    found = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "by their end" in found["b2"]
    assert "by their end" not in found["b1"]


def test_the_other_results_have_their_exit_codes(
    ask: Ask, empty_lake: Lake, of_lake: OfLake, found: Given
) -> None:
    verify = ["backfill", *of_lake, "--from", "2026-05-01", "--verify"]
    found(replace(TABLE, equal=1, windows=1))
    assert ask(*verify)[0] == 0
    found(replace(TABLE, changed=1, windows=1))
    assert ask(*verify)[0] == 11


def test_after_a_changed_formula_the_stream_keeps_the_old_one(
    ask: Ask, empty_lake: Lake, of_lake: OfLake, found: Given
) -> None:
    pipeline, *root = of_lake
    changed = Path(pipeline).with_name("changed.yml")
    shutil.copy(pipeline, changed)
    publish = ["backfill", pipeline, *root, "--from", "2026-05-01", "--publish"]
    found(replace(TABLE, changed=1, windows=1), PublishedBackfill(1, "s1"))
    _, out, _ = ask(*publish)
    assert (
        f"to take it back, stop the pipeline, and then: headgate savepoint restore {pipeline}"
        in out
    )
    assert "later windows" not in out
    _, out, _ = ask(*publish, "--declaration", str(changed))
    assert "the stream computes later windows by tiny.yml as before" in out
    assert f"headgate upgrade {pipeline}" in out


def test_the_list_says_what_a_restore_has_taken_back(
    ask: Ask, empty_lake: Lake, of_lake: OfLake
) -> None:
    for number in (1, 2):
        document = {"backfill": f"b{number}", "tables": {"per_minute": {}}}
        append(empty_lake.control, "backfill", document, at(events=0), NOON)
    reset_to(empty_lake.control, {"gold/per_minute": ResetTarget()}, NOON, void={"events": [2]})
    differing = replace(TABLE, changed=1)
    for number in (1, 2):
        published = PublishedBackfill(number, "s1")
        id_ = f"b{number}"
        report = BackfillReport(id_, "tiny", NOON, NOON, None, "digest", (differing,), published)
        write_report(empty_lake.layout, report)
    _, out, _ = ask("backfill", *of_lake)
    back = [line for line in out.splitlines() if "taken back" in line]
    assert [line.split()[0] for line in back] == ["b2"]
    assert "as operation 1" in out
    assert last_object(ask("backfill", *of_lake, "--json")[1])["taken_back"] == ["b2"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--expect", "gold.per_minute=1-ff"], "only with --publish"),
        (["--publish", "--expect", "gold.per_minute"], "is not TABLE=DIGEST"),
        (["--publish", "--expect", "a=1", "--expect", "gold.a=2"], "a is given twice"),
    ],
)
def test_an_expectation_that_makes_no_sense_is_refused(
    ask: Ask, empty_lake: Lake, of_lake: OfLake, found: Given, options: list[str], says: str
) -> None:
    found(TABLE)
    code, _, err = ask("backfill", *of_lake, "--from", "2026-05-01", *options)
    assert (code, says in err) == (2, True)


def test_other_rows_than_expected_are_refused_also_if_gold_has_them(
    ask: Ask, empty_lake: Lake, of_lake: OfLake, found: Given
) -> None:
    found(replace(TABLE, equal=1, windows=1, live="1-ff", backfilled="1-ff"))
    publish = ["backfill", *of_lake, "--from", "2026-05-01", "--publish", "--expect"]
    assert ask(*publish, "gold.per_minute=1-ff")[0] == 0
    code, _, err = ask(*publish, "gold.per_minute=1-fe")
    assert (code, "1-fe was expected, and 1-ff was computed" in err) == (11, True)
    code, _, err = ask(*publish, "gold.per_minut=1-ff")
    assert (code, "per_minut is not computed" in err) == (2, True)


def test_rows_that_nobody_expects_are_not_published(
    empty_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table with the expected rows is not published either: both were approved together."""
    layout, declared = empty_lake.layout, empty_lake.pipeline
    tables = [replace(TABLE, table=name, changed=1, backfilled="1-ff") for name in ("a", "b")]
    outcome = BackfillOutcome(
        BackfillReport("b1", "tiny", NOON, NOON, None, "digest", tuple(tables)), {}, 0
    )
    asked = BackfillScope(declared, declared, ("a", "b"), NOON, None)
    monkeypatch.setattr(computing, "await_request", lambda *_, **__: PublishedBackfill(1, "s1"))
    for expected in ({"a": "1-ff"}, {"a": "1-ff", "b": "1-fe"}):
        with pytest.raises(HeadgateError, match=r"gold\.b: .* 1-ff was computed") as caught:
            require_expected(expected, outcome.report)
        assert caught.value.exit_code == 11
        assert "gold.a" not in str(caught.value)
    require_expected({"a": "1-ff", "b": "1-ff"}, outcome.report)
    assert not waiting_requests(layout)
    assert not [*savepoints(layout)]
    publish_here("")(layout, asked, outcome, "")
    assert len(waiting_requests(layout)) == 1


def test_a_publication_that_a_gate_holds_says_so_at_once_and_is_recorded(
    ask: Ask, gated: Lake, of_lake: OfLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record follows what becomes of it, also without the command."""
    layout, declared = gated.layout, gated.pipeline
    differing = replace(TABLE, changed=1, windows=1)
    report = BackfillReport("b1", "tiny", NOON, NOON, None, "digest", (differing,))
    patch = Patch("patches/b1", "0", "digest", 0, (0, 1))
    outcome = BackfillOutcome(report, {"per_minute": patch}, 0)
    gold = gated.table("gold/per_minute")

    def drive(*_: object) -> tuple[bool, str]:
        (request,) = waiting_requests(layout)
        decided = gated.control, request.kind, request.document, at(events=2), NOON
        append(*decided, request=request.id)
        remove_request(layout, request)
        hold = Hold("per_minute", (n := gold.refresh().n), n, NOON, NOON, (), operation=1)
        documents.hold(layout, hold)
        return True, ""

    monkeypatch.setattr(requesting, "_drive", drive)

    def compute_here(*_: object, **__: object) -> BackfillOutcome:
        asked = BackfillScope(declared, declared, ("per_minute",), NOON, None)
        published = publish_here("")(layout, asked, outcome, "")
        found = replace(report, published=published)
        write_report(layout, found)
        return replace(outcome, report=found)

    monkeypatch.setattr(verb, "compute_here", compute_here)
    monkeypatch.setattr(verb, "send_backfill", lambda *_: None)
    began = time.monotonic()
    code, out, _ = ask("backfill", *of_lake, "--from", "2026-05-01", "--publish")
    assert time.monotonic() - began < 20
    assert code == 10
    assert "gold.per_minute is not published yet: a rule of its gate holds it" in out
    assert "published: gold.per_minute" not in out
    assert "headgate gate show" in out
    assert "to take it back" not in out
    assert "gold.per_minute waits" in ask("backfill", *of_lake)[1]
    # A person releases it, and it becomes visible. The command has ended long ago.
    state = replace(gold.refresh().held("operation", gold.epoch), operation=1)
    rows = [{"window_start": NOON, "events": 7, "time": NOON}]
    content = pa.Table.from_pylist(rows, pa.schema(SCHEMAS["gold/per_minute"]))
    gold.commit(state, add=stage_arrow(gold, state, content, time_column="time"))
    documents.let_go(layout, "per_minute")
    code, out, err = ask("backfill", *of_lake)
    assert (code, err) == (0, "")
    assert "as operation 1" in out
    assert "waits" not in out


def test_the_list_says_what_a_person_has_rejected(
    ask: Ask, empty_lake: Lake, of_lake: OfLake
) -> None:
    gold = empty_lake.table("gold/per_minute")
    document = {"backfill": "b1", "tables": {"per_minute": {}}, "savepoint": "s1"}
    document["rejected"] = {"per_minute": {"by": "anna", "reason": "x", "at": "now"}}
    append(empty_lake.control, "backfill", document, at(events=0), NOON)
    gold.commit(replace(gold.refresh().held("operation", gold.epoch), operation=1))
    differing = replace(TABLE, changed=1)
    held = PublishedBackfill(1, "s1", waiting=("per_minute",))
    report = BackfillReport("b1", "tiny", NOON, NOON, None, "digest", (differing,), held)
    write_report(empty_lake.layout, report)
    out = ask("backfill", *of_lake)[1]
    assert "gold.per_minute rejected" in out
    assert "as operation" not in out
    (found,) = last_object(ask("backfill", *of_lake, "--json")[1])["backfills"]
    assert (found["published"]["waiting"], found["published"]["rejected"]) == ([], ["per_minute"])
