"""`headgate gate`: which gold tables are held, why, and what a person can do."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.files import project_folder
from headgate.declaration.load import load
from headgate.flow.gates import documents
from headgate.flow.gates.documents import Hold
from headgate.insight.status.health import HealthContext, violations
from headgate.insight.status.limits import Limits
from headgate.lake.tables.row_changes import RowChange, RowChanges
from headgate.lake.tables.table import Table
from tests.support.decisions import append, at
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake

OfLake = tuple[str, str, str]
SINCE = datetime(2026, 3, 1, 12, tzinfo=UTC)
RESULTS = (
    RuleResult("sane", "critical", "hold", met=False, unexpected=3),
    RuleResult("full", "warning", "hold", met=True, observed="9"),
    RuleResult("odd", "critical", "hold", met=False, error="no such thing"),
    RuleResult("small", "info", "warn", met=False, observed="12"),
)


@pytest.fixture
def gated(lake: Lake) -> Lake:
    """The lake, whose gold table has a suite."""
    file = lake.pipeline.file
    text = file.read_text()
    assert text.count("    allowed_lateness:") == 1
    file.write_text(text.replace("    allowed_", "    expectations: sane\n    allowed_"))
    folder = project_folder(file) / "expectations"
    folder.mkdir()
    (folder / "sane.yml").write_text("expectations: [{id: sane, expect: events > 0}]")
    return lake


def position(lake: Lake) -> int:
    table = Table(lake.layout.storage, "gold/per_minute", pipeline=lake.pipeline.name)
    return table.refresh().n


def hold(lake: Lake, n: int | None = None) -> None:
    n = position(lake) if n is None else n
    found = Hold("per_minute", n, n + 4, SINCE, SINCE + timedelta(minutes=5), RESULTS)
    documents.hold(lake.layout, found)


def test_an_open_gate(ask: Ask, gated: Lake, of_lake: OfLake) -> None:
    code, out, _ = ask("gate", "status", *of_lake)
    assert code == 0
    assert "gold/per_minute" in out
    assert "open" in out
    (gate,) = last_object(ask("gate", "status", *of_lake, "--json")[1])["gates"]
    assert (gate["held"], gate["last"], gate["suite"]) == (None, None, "sane")


def test_a_pipeline_without_rules(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    code, out, _ = ask("gate", "status", *of_lake)
    assert (code, "no gold table has expectations" in out) == (0, True)


def test_a_held_table_says_which_rules_and_what_to_type(
    ask: Ask, gated: Lake, of_lake: OfLake
) -> None:
    hold(gated)
    code, out, _ = ask("gate", "status", *of_lake)
    assert code == 10
    assert "held since 2026-03-01 12:00:00Z" in out
    assert "sane (critical): not met, 3 rows break it" in out
    assert "odd (critical) could not be validated: no such thing" in out
    assert "small" not in out, "it only warns"
    assert "gate release" in out
    (gate,) = last_object(ask("gate", "status", *of_lake, "--json")[1])["gates"]
    assert [result["rule"] for result in gate["held"]["results"]] == [r.rule for r in RESULTS]
    status = ask("status", *of_lake)[1]
    assert "gold/per_minute is held since" not in status, "it has never run"
    (held,) = last_object(ask("status", *of_lake, "--json")[1])["held"]
    assert held["table"] == "per_minute"
    (said,) = violations("gate", context(gated), Limits())
    assert "gold/per_minute is held at batch" in said
    assert "for 60 min" in said
    assert "sane (critical): not met" in said


def context(lake: Lake) -> HealthContext:
    declared = load(lake.pipeline.file)
    return HealthContext(declared, lake.layout, (), SINCE + timedelta(hours=1))


def test_a_document_that_a_crash_left_behind_holds_nothing(
    ask: Ask, gated: Lake, of_lake: OfLake
) -> None:
    hold(gated, n=0)
    assert ask("gate", "status", *of_lake)[0] == 0
    assert violations("gate", context(gated), Limits()) == ()
    code, _, err = ask("gate", "release", *of_lake, "gold.per_minute", "--reason", "x")
    assert (code, "gold/per_minute is not held" in err) == (1, True)


def test_a_release_says_who_and_why(ask: Ask, gated: Lake, of_lake: OfLake) -> None:
    hold(gated)
    n = position(gated)
    code, out, _ = ask("gate", "release", *of_lake, "gold.per_minute", "--reason", "a real outlier")
    assert code == 0
    assert f"batches {n + 1} to {n + 4} may become visible" in out
    given = documents.released(gated.layout, "per_minute")
    assert given is not None
    assert (given.upto, given.reason) == (n + 4, "a real outlier")
    assert "@" in given.by


def hold_rebuild(lake: Lake) -> str:
    """Hold a rebuild of the gold table at batch 0. Returns the folder of its log."""
    log = "_headgate/rebuild/7/gold/per_minute"
    rebuild = Table(lake.layout.storage, "gold/per_minute", pipeline=lake.pipeline.name, log=log)
    schema = Table(lake.layout.storage, "gold/per_minute", pipeline=lake.pipeline.name).handle
    rebuild.create(pa.schema(schema.schema()), "of a test", time_column="window_start")
    documents.hold(lake.layout, Hold("per_minute", 0, 4, SINCE, SINCE, RESULTS, log))
    return log


def test_the_commands_for_a_table_and_its_rebuild_can_be_typed(
    ask: Ask, gated: Lake, of_lake: OfLake
) -> None:
    hold(gated)
    hold_rebuild(gated)
    _, out, _ = ask("gate", "status", *of_lake)
    typed = [shlex.split(line) for line in out.splitlines() if "gate release" in line]
    assert len(typed) == 2
    for words in typed:
        at = words.index("gate")
        assert ask(*words[at:])[0] == 0, words


def test_a_held_rebuild_is_shown_and_released(ask: Ask, gated: Lake, of_lake: OfLake) -> None:
    log = hold_rebuild(gated)
    code, out, _ = ask("gate", "status", *of_lake)
    assert (code, "the rebuild of gold/per_minute" in out, "--rebuild" in out) == (10, True, True)
    (gate,) = last_object(ask("gate", "status", *of_lake, "--json")[1])["gates"]
    assert (gate["held"], gate["rebuild"]["log"]) == (None, log)
    (said,) = violations("gate", context(gated), Limits())
    assert "the rebuild of gold/per_minute is held at batch 0" in said
    code, out, _ = ask("gate", "release", *of_lake, "gold.per_minute", "--reason", "x")
    assert (code, "the rebuild of gold/per_minute may be published" in out) == (0, True)
    given = documents.released(gated.layout, "per_minute.rebuild")
    assert given is not None
    assert given.log == log
    assert documents.released(gated.layout, "per_minute") is None
    code, _, err = ask("gate", "release", *of_lake, "per_minute", "--current", "--reason", "x")
    assert (code, "gold/per_minute is not held" in err) == (1, True)
    gated.layout.storage.remove(log)
    assert ask("gate", "status", *of_lake)[0] == 0, "the rebuild was abandoned"


def test_where_both_are_held_one_is_to_be_named(ask: Ask, gated: Lake, of_lake: OfLake) -> None:
    hold(gated)
    hold_rebuild(gated)
    code, _, err = ask("gate", "retry", *of_lake, "gold.per_minute")
    assert (code, "--rebuild, or --current" in err) == (2, True)
    for option, asked in (("--rebuild", "per_minute.rebuild"), ("--current", "per_minute")):
        assert not documents.retry_asked(gated.layout, asked)
        assert ask("gate", "retry", *of_lake, "gold.per_minute", option)[0] == 0
        assert documents.retry_asked(gated.layout, asked)


def test_a_release_needs_a_reason(ask: Ask, gated: Lake, of_lake: OfLake) -> None:
    hold(gated)
    code, _, err = ask("gate", "release", *of_lake, "gold.per_minute")
    assert (code, "--reason" in err) == (2, True)
    assert documents.released(gated.layout, "per_minute") is None


def test_a_retry_is_a_request(ask: Ask, gated: Lake, of_lake: OfLake) -> None:
    hold(gated)
    assert ask("gate", "retry", *of_lake, "per_minute")[0] == 0
    assert documents.retry_asked(gated.layout, "per_minute")


def test_a_table_without_a_gate(ask: Ask, gated: Lake, of_lake: OfLake) -> None:
    code, _, err = ask("gate", "retry", *of_lake, "gold.nothing")
    assert code == 2
    assert "tiny has no gold table with expectations named 'gold.nothing'" in err
    assert "there are: gold.per_minute\n" in err


ROWS = RowChanges(
    *(("window_start",), ("site",), ("events", "total")),
    rows=(
        RowChange(
            {"window_start": "12:00", "site": "a", "events": "3", "total": None},
            {"window_start": "12:00", "site": "a", "events": "5000", "total": None},
            ("sane",),
        ),
        RowChange(
            None,
            {"window_start": "12:00", "site": "<b>|", "events": "7", "total": "1"},
            ("sane", "odd"),
        ),
    ),
    total=7,
)


def test_the_rows_that_break_rules_are_shown(ask: Ask, gated: Lake, of_lake: OfLake) -> None:
    n, at = position(gated), SINCE + timedelta(minutes=5)
    result = replace(RESULTS[0], accepts=("0 row:1", "0 row:2"))
    found = Hold("per_minute", n, n + 1, SINCE, at, (result, RESULTS[1]))
    documents.hold(gated.layout, found, ROWS)
    code, out, _ = ask("gate", "show", *of_lake, "gold.per_minute")
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == (f"gold/per_minute: batch {n + 1}, held since 2026-03-01 12:00:00Z")
    assert lines[1] == f"computed by {gated.pipeline.file.name}, the pipeline's own declaration"
    assert lines[2:4] == ["sane (critical): not met, 3 rows break it", "expected: events > 0"]
    assert "12:00 a changed events 3 5000 sane" in lines
    assert "12:00 <b>| new all - events=7, total=1 sane, odd" in lines
    assert "the first 2 of 7 rows" in lines
    typed = [shlex.split(line) for line in lines if "headgate gate" in line]
    assert [words[words.index("gate") + 1] for words in typed] == ["release"]
    document = last_object(ask("gate", "show", *of_lake, "gold.per_minute", "--json")[1])
    held = document["held"]
    assert (held["rows"]["total"], len(held["rows"]["rows"])) == (7, 2)
    row, _ = held["rows"]["rows"]
    assert (row["change"], row["rules"]) == ("changed", ["sane"])
    assert (row["before"]["events"], row["after"]["events"]) == ("3", "5000")
    assert "accepts" not in held["results"][0]
    status = last_object(ask("gate", "status", *of_lake, "--json")[1])
    assert status["gates"][0]["held"] == held


def test_the_status_has_the_first_rows_and_how_many_there_are(
    ask: Ask, gated: Lake, of_lake: OfLake
) -> None:
    n = position(gated)
    many = replace(ROWS, rows=ROWS.rows[:1] * 50, total=50)
    documents.hold(gated.layout, Hold("per_minute", n, n + 1, SINCE, SINCE, RESULTS), many)
    (gate,) = last_object(ask("gate", "status", *of_lake, "--json")[1])["gates"]
    assert (gate["held"]["rows"]["total"], len(gate["held"]["rows"]["rows"])) == (50, 20)


def test_a_rule_about_the_whole_table_has_no_rows(ask: Ask, gated: Lake, of_lake: OfLake) -> None:
    hold(gated)
    out = ask("gate", "show", *of_lake, "gold.per_minute")[1]
    assert "look again" in out, "a validation is writing the rows of `sane`"
    n = position(gated)
    of_sum = RuleResult("sum", "critical", "hold", met=False, observed="9")
    documents.hold(gated.layout, Hold("per_minute", n, n + 1, SINCE, SINCE, (of_sum,)))
    _, out, _ = ask("gate", "show", *of_lake, "gold.per_minute")
    assert "no single row breaks these rules: they are about the whole table" in out
    code, _, err = ask("gate", "show", *of_lake, "gold.per_minute", "--rebuild")
    assert (code, "the rebuild of gold/per_minute is not held" in err) == (1, True)


def operate(lake: Lake, name: str, **document: object) -> None:
    """Request an operation, and hold the gold table by it."""
    n = position(lake)
    append(lake.control, name, {"table": "per_minute", **document}, at(events=2), SINCE)
    found = Hold("per_minute", n, n, SINCE, SINCE, RESULTS, operation=1)
    documents.hold(lake.layout, found)


def test_a_held_replay_is_given_up(ask: Ask, gated: Lake, of_lake: OfLake) -> None:
    operate(gated, "late_replay")
    out = ask("gate", "status", *of_lake)[1]
    typed = [shlex.split(line) for line in out.splitlines() if "headgate gate" in line]
    assert [words[words.index("gate") + 1] for words in typed] == ["show", "release", "reject"]
    words = typed[2]
    code, out, _ = ask(*words[words.index("gate") :])
    assert code == 0
    assert "gold/per_minute: the replay of late rows after batch" in out
    assert "is given up; a running driver does it at once, else the next start" in out
    given = documents.rejected(gated.layout, "per_minute")
    assert given is not None
    assert (given.operation, given.reason, "@" in given.by) == (1, "WHY", True)


@pytest.mark.parametrize(
    ("name", "document", "says"),
    [
        ("drain", {}, "is held by a drain, which cannot be given up"),
        ("late_replay", {"rejected": {"per_minute": {}}}, "is given up already"),
        ("backfill", {"tables": {}, "rejected": {"per_minute": {}}}, "is given up already"),
    ],
)
def test_what_cannot_be_given_up(
    ask: Ask, gated: Lake, of_lake: OfLake, name: str, document: dict[str, Any], says: str
) -> None:
    operate(gated, name, **document)
    code, _, err = ask("gate", "reject", *of_lake, "gold.per_minute", "--reason", "x")
    assert code in (1, 2)
    assert says in err
    assert documents.rejected(gated.layout, "per_minute") is None


def test_a_batch_is_not_given_up(ask: Ask, gated: Lake, of_lake: OfLake) -> None:
    hold(gated)
    code, _, err = ask("gate", "reject", *of_lake, "gold.per_minute", "--reason", "x")
    assert code == 2
    assert "events are not given up" in err
    for said in ("headgate gate show", "headgate gate release", "--full-refresh silver.good"):
        assert said in err
    assert documents.rejected(gated.layout, "per_minute") is None
