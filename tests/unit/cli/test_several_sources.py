"""What the verbs say about a pipeline with several sources."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.ledger import show_ledger, summary
from headgate.cli.output import console
from headgate.cli.quarantine import replaying
from headgate.cli.quarantine.selecting import selection, source_meant, sources_meant
from headgate.errors import UsageError
from headgate.flow.sources.deployed_source import UnreadInput
from headgate.history.replay.corrections import (
    CorrectedRecord,
    EditedError,
    edited_records,
    exported_records,
)
from headgate.history.replay.refused import RefusedRecord, refused_table_names
from headgate.insight.ledger import balance
from headgate.insight.ledger.account import AcceptedGap
from tests.support.arrow_tables import NOON
from tests.support.fake_stages import Record
from tests.support.lake import Lake
from tests.support.several_sources import ingest, land
from tests.support.several_sources import two_sources as _two_sources
from tests.unit.cli.conftest import Ask, last_object

two_sources = _two_sources

Shop = tuple[Path, str, Path]


@pytest.fixture
def shop(two_sources: Lake) -> Shop:
    """PIPELINE and --root of the lake of two sources."""
    return two_sources.pipeline.file, "--root", two_sources.root


def test_the_ledger_has_a_row_for_each_source(ask: Ask, shop: Shop) -> None:
    code, out, _ = ask("ledger", *shop, "--by-id")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["shop", "read", "8", "duplicate", "1"]
    assert ["orders", "3", "6", "0", "1", "0", "1", "0"] in lines
    assert ["clicks", "1", "2", "0", "0", "0", "0", "0"] in lines
    assert ["seen", "clicks", "2", "0", "0", "0", "2", "0", "0"] in lines
    assert "proved by id: 6 rows of bronze.orders, 2 rows of bronze.clicks" in out
    document = last_object(ask("ledger", *shop, "--by-id", "--json")[1])
    assert document["sources"]["orders"]["n"] == 3
    assert document["by_id"]["sources"] == {"orders": {"rows": 6}, "clicks": {"rows": 2}}


def test_refused_records_are_those_of_each_source(ask: Ask, shop: Shop, two_sources: Lake) -> None:
    land(two_sources, "clicks", [Record(bad=True), Record(bad=True)])
    ingest(two_sources, "clicks")
    two_sources.catch_up()
    land(two_sources, "orders", [Record()])
    ingest(two_sources, "orders")
    lines = [line.split() for line in ask("quarantine", "list", *shop)[1].splitlines()]
    assert ["orders", "quarantine", "wrong_type", "1", "0"] in [line[:5] for line in lines]
    assert ["clicks", "quarantine", "wrong_type", "2", "0"] in [line[:5] for line in lines]
    assert ["orders:", "not", "yet"] in [line[:3] for line in lines]
    assert lines[-1][-3:] == ["--source", "orders", "--dry-run"]
    document = last_object(ask("quarantine", "list", *shop, "--json")[1])
    assert [(each["source"], each["open"]) for each in document["refused"]] == [
        ("orders", 1),
        ("clicks", 2),
    ]
    assert document["sources"] == {
        "orders": {"n": 4, "behind": ["silver.paid"]},
        "clicks": {"n": 2, "behind": []},
    }
    shown = last_object(ask("quarantine", "show", *shop, "--json")[1])["records"]
    assert [each["source"] for each in shown] == ["orders", "clicks", "clicks"]
    first = last_object(ask("quarantine", "show", *shop, "--limit", "2", "--json")[1])["records"]
    assert [each["source"] for each in first] == ["orders", "clicks"]
    only = ask("quarantine", "show", *shop, "--source", "clicks", "--limit", "1", "--json")[1]
    assert [each["source"] for each in last_object(only)["records"]] == ["clicks"]


def test_refused_records_are_exported_and_replayed_from_one_source(ask: Ask, shop: Shop) -> None:
    """Positions of two sources may be equal, so a file says of which source its records are."""
    for verb in (["export", "--output", "new"], ["replay", "--dry-run"]):
        code, _, err = ask("quarantine", *verb, *shop)
        assert (code, "shop has several sources" in err) == (2, True)
        assert "name one: --source orders or --source clicks" in err
    code, out, _ = ask("quarantine", "export", *shop, "--output", "new", "--source", "orders")
    assert (code, "--source orders --edited new --dry-run" in out) == (0, True)
    (line,) = Path("new").read_text().splitlines()
    assert json.loads(line)["source"] == "orders"
    code, _, err = ask("quarantine", "replay", *shop, "--source", "x", "--dry-run")
    assert (code, "shop has no source 'x'" in err, "orders, clicks" in err) == (2, True, True)


def test_an_edited_record_of_another_source_is_refused(tmp_path: Path) -> None:
    refused = RefusedRecord(
        "quarantine", 0, 7, None, None, ["wrong_type"], None, None, "f", NOON, b"{}", True
    )
    corrected = [CorrectedRecord((refused,), b"{}")]
    file = tmp_path / "edited"
    file.write_text("".join(f"{json.dumps(e)}\n" for e in exported_records(corrected, "orders")))
    assert edited_records(corrected, file, "orders") == corrected
    with pytest.raises(EditedError, match="0:7 of orders is not one of the selected"):
        edited_records(corrected, file, "clicks")


def test_files_have_a_sequence_in_their_source(
    ask: Ask, shop: Shop, two_sources: Lake, tmp_path: Path
) -> None:
    listed = last_object(ask("files", "list", *shop, "--json")[1])
    files = [(each["source"], each["sequence"]) for each in listed["files"]]
    assert files == [("orders", 1), ("orders", 2), ("orders", 3), ("clicks", 1)]
    assert listed["sources"] == {"orders": {"unnamed": []}, "clicks": {"unnamed": []}}
    assert ask("files", "list", *shop)[1].splitlines()[1].split()[:2] == ["orders", "1"]
    land(two_sources, "clicks", [Record()])
    listed = last_object(ask("files", "list", *shop, "--source", "clicks", "--json")[1])
    assert [each["status"] for each in listed["files"]] == ["read", "waiting"]
    pipeline, *root = shop
    code, _, err = ask("files", "skip", pipeline, "1", *root)
    assert (code, "name one: --source orders or --source clicks" in err) == (2, True)
    for source in ("orders", "clicks"):
        (tmp_path / "landing" / source / "001.json").unlink()
    code, out, _ = ask("files", "skip", pipeline, "1", *root, "--source", "clicks")
    assert (code, out.startswith("clicks: skipped file 1 001.json")) == (0, True)
    for source, status in (("orders", "read"), ("clicks", "withdrawn")):
        found = last_object(ask("files", "list", *shop, "--source", source, "--json")[1])["files"]
        assert (found[0]["source"], found[0]["status"]) == (source, status)


def test_changed_files_of_all_sources_are_skipped_together(
    ask: Ask, shop: Shop, tmp_path: Path
) -> None:
    for source in ("orders", "clicks"):
        (tmp_path / "landing" / source / "001.json").write_text("{}")
    skipped = last_object(ask("files", "skip", *shop, "--changed", "--json")[1])["skipped"]
    assert [(each["source"], each["sequence"]) for each in skipped] == [
        ("orders", 1),
        ("clicks", 1),
    ]


def test_new_times_are_accepted_in_all_sources_or_in_one(
    ask: Ask, shop: Shop, tmp_path: Path
) -> None:
    for source in ("orders", "clicks"):
        os.utime(tmp_path / "landing" / source / "001.json", (0, 0))
    accepted = ask("files", "accept", *shop, "--source", "orders", "--json")[1]
    assert last_object(accepted)["accepted"] == 1
    assert (
        last_object(ask("files", "list", *shop, "--changed", "--json")[1])["files"][0]["source"]
        == "clicks"
    )
    assert last_object(ask("files", "accept", *shop, "--json")[1])["accepted"] == 1


def query(ask: Ask, shop: Shop, sql: str, *options: str) -> tuple[int, object, str]:
    """The exit code, the rows, and the error."""
    pipeline, *root = shop
    code, out, err = ask("query", pipeline, sql, *root, "--json", *options)
    return code, last_object(out).get("rows"), err


def test_a_query_names_the_tables_of_each_source(ask: Ask, shop: Shop) -> None:
    counts = "SELECT " + ", ".join(
        f"(SELECT count(*) FROM {table})"
        for table in ("bronze.orders", "clicks", "quarantine.orders", "files.orders")
    )
    assert query(ask, shop, counts)[:2] == (0, [[6, 2, 1, 3]])
    for name in ("quarantine", "files"):
        code, _, err = query(ask, shop, f"SELECT * FROM {name}")
        assert (code, f"{name}.orders, " in err, f", {name}," in err) == (2, True, False)


def test_a_batch_is_one_of_a_source(ask: Ask, shop: Shop) -> None:
    counts = "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM clicks)"
    assert query(ask, shop, counts, "--at", "orders=1")[:2] == (0, [[3, 2]])
    assert query(ask, shop, counts, "--at", "orders=2", "--at", "clicks=0")[:2] == (0, [[4, 0]])
    code, _, err = query(ask, shop, counts, "--at", "1")
    assert (code, "say of which source: --at orders=1 or --at clicks=1" in err) == (2, True)
    code, _, err = query(ask, shop, counts, "--at", "clicks=2")
    assert (code, "batch 2 of clicks; the last one is 1" in err) == (2, True)
    for wrong in ("x=1", "orders=", "orders=-1"):
        assert query(ask, shop, counts, "--at", wrong)[0] == 2


def test_versions_that_belong_together_are_those_of_each_source(ask: Ask, shop: Shop) -> None:
    code, out, _ = ask("versions", *shop)
    assert (code, out.splitlines()[0]) == (0, "orders: batch 2, clicks: batch 1")
    document = last_object(ask("versions", *shop, "--at", "orders=1", "--json")[1])
    assert document["sources"] == {"orders": {"n": 1}, "clicks": {"n": 1}}
    assert "n" not in document


def test_a_load_is_one_of_a_source(ask: Ask, shop: Shop, tmp_path: Path) -> None:
    assert "--source orders --files archive\n" in ask("load", *shop)[1]
    archive = tmp_path / "archive"
    archive.mkdir()
    (archive / "old.json").write_text(f"{Record().line()}\n")
    code, _, err = ask("load", *shop, "--files", archive, "--no-wait")
    assert (code, "name one: --source orders or --source clicks" in err) == (2, True)
    code, out, err = ask(
        "load", *shop, "--files", archive, "--no-wait", "--source", "clicks", "--json"
    )
    assert (code, last_object(out)["source"]) == (0, "clicks"), err
    assert ask("load", *shop)[1].splitlines()[1].split()[1:3] == ["clicks", "reading"]
    (load,) = last_object(ask("load", *shop, "--json")[1])["loads"]
    assert load["source"] == "clicks"


def test_the_end_of_a_run_counts_what_each_source_has_delivered(two_sources: Lake) -> None:
    document = summary(balance(two_sources.layout, two_sources.pipeline), 4, 1.0)
    assert document["sources"] == {
        "orders": {"read": 6, "duplicate": 1, "quarantined": 1},
        "clicks": {"read": 2, "duplicate": 0, "quarantined": 0},
    }


def test_gaps_and_unread_files_are_shown_with_their_source(
    two_sources: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    account = balance(two_sources.layout, two_sources.pipeline)
    orders, clicks = account.sources
    gaps = (AcceptedGap("taps", 0, 5, 7, "retention"),)
    files = (UnreadInput(3, "x.json", "set_aside", "it is cut"),)
    sources = (replace(orders, files=files), replace(clicks, gaps=gaps, files=None))
    show_ledger(replace(account, sources=sources), console())
    lines = capsys.readouterr().out.splitlines()
    assert ["taps/0", "clicks", "5", "to", "6", "retention"] in [line.split() for line in lines]
    assert "orders: file 3 x.json: set aside: it is cut" in lines
    assert "the records of 1 file set aside are missing" in lines[-1]


def test_a_table_of_rejected_rows_names_its_source(two_sources: Lake) -> None:
    declared = two_sources.pipeline
    suite: Any = object()
    silver = {name: replace(table, suite=suite) for name, table in declared.silver.items()}
    declared = replace(declared, silver=silver)
    assert source_meant(declared, None, "rejected.seen").name == "clicks"
    assert [each.name for each in sources_meant(declared, None, "quarantine")] == [
        "orders",
        "clicks",
    ]
    assert [*refused_table_names(declared, ["clicks"])] == ["quarantine", "rejected.seen"]
    meant = sources_meant(declared, "orders", "rejected.seen")
    with pytest.raises(UsageError, match=r"no refused records in a table 'rejected.seen'"):
        selection(declared, meant, "rejected.seen", None, None, None, None, None)


def test_a_replay_is_done_once_the_tables_of_its_source_have_it(
    two_sources: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "PATIENCE", 0.0)
    for _ in range(3):
        land(two_sources, "clicks", [Record()])
        ingest(two_sources, "clicks")
    declared, layout = two_sources.pipeline, two_sources.layout
    clicks = declared.sources["clicks"]
    assert replaying._await_silver(declared, layout, clicks, 4) == ["silver/seen"]
    two_sources.catch_up()
    assert replaying._await_silver(declared, layout, clicks, 4) == []
