"""Invalid values of options: one line says why, and the exit code is 2."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake

OfLake = tuple[str, str, str]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["vacuum", "PIPELINE", "--keep-for", "-1 hours"], "negative"),
        (["vacuum", "PIPELINE", "--keep-for", "3661 days"], "at most 3,660 days"),
        (["vacuum", "PIPELINE", "--keep-for", "999999 days"], "at most 3,660 days"),
        (["upgrade", "PIPELINE", "--patience", "-1"], "--patience"),
        (["upgrade", "PIPELINE", "--patience", "nan"], "--patience"),
        (["load", "PIPELINE", "--share", "nan"], "--share"),
        (["quarantine", "list", "PIPELINE", "--since", "-2 hours"], "neither a time"),
        (["backfill", "PIPELINE", "--from", "-2 days", "--dry-run"], "neither a time"),
        (["late", "show", "PIPELINE", "gold.per_minute", "--from", "-1 days"], "neither a time"),
        (["logs", "PIPELINE", "-n", "-5"], "-n"),
        (["logs", "PIPELINE", "-n", "9" * 20], "-n"),
        (["late", "show", "PIPELINE", "gold.per_minute", "--limit", "1000001"], "--limit"),
        (["quarantine", "show", "PIPELINE", "--limit", "9" * 20], "--limit"),
        (["logs", "PIPELINE", "-f", "--json"], "cannot be combined with --follow"),
        (["kafka", "topics", "--create", "t", "--partitions", "100000000"], "--partitions"),
        (["kafka", "topics", "--create", "t", "--delete", "t"], "--delete"),
        (["init", "a" * 300], "File name too long"),
        (["init", ""], "it is empty"),
        (["status", ""], "the name of the pipeline is empty"),
        (["query", "PIPELINE", "SELECT '\udcff'"], r"SELECT '\xff': not UTF-8"),
        (["list", "--root", ""], "the name of the folder is empty"),
        (["list", "--root", "s3://bucket/x"], "is not a folder of this machine"),
        (["demo", "--root", "s3://bucket/x"], "is not a folder of this machine"),
        (["savepoint", "restore", "PIPELINE", "latest", "--to", "s3://b/x"], "is not a folder"),
        (["metrics", "--once", "--alerts"], "choose one of the two"),
        (["load", "PIPELINE", "--files", ""], "must name files"),
        (["load", "PIPELINE", "--from", ""], "--from"),
        (
            ["quarantine", "list", "PIPELINE", "--since", "1 day", "--until", "2 days"],
            "it is not after --since",
        ),
        (
            ["quarantine", "list", "PIPELINE", "--table", "quarantine", "--rule", "x"],
            "not in quarantine",
        ),
        (
            ["quarantine", "show", "PIPELINE", "--reason", "unparsable", "--rule", "x"],
            "not in quarantine",
        ),
    ],
)
def test_a_wrong_value_is_refused(
    ask: Ask, of_lake: OfLake, arguments: list[str], said: str
) -> None:
    typed = [word for given in arguments for word in (of_lake if given == "PIPELINE" else [given])]
    code, out, err = ask(*typed)
    assert said in " ".join(err.split())
    assert code == 2
    assert bool(out) == ("--json" in typed)
    assert "Traceback" not in err


def test_a_root_that_is_not_utf_8_is_refused(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "HEADGATE_ROOT", "/lake\udcff")
    code, _, err = ask("list")
    assert code == 2
    assert r"/lake\xff is not UTF-8" in err


def test_a_page_without_a_place_is_refused(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    code, _, err = ask("quality", "report", *of_lake, "--output", "no/where/x.html")
    assert code == 2
    assert "no/where/x.html cannot be written: No such file or directory" in err
    assert "headgate quality report" in err


def test_topics_are_not_loaded_into_a_source_of_files(
    ask: Ask, lake: Lake, of_lake: OfLake
) -> None:
    code, out, _ = ask("load", *of_lake, "--kafka", "bids", "--json")
    assert code == last_object(out)["error"]["exit_code"] == 2
    assert "events reads files" in last_object(out)["error"]["message"]


def test_a_file_is_no_folder_for_a_copy(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    assert ask("savepoint", "create", *of_lake)[0] == 0
    Path("file").touch()
    pipeline, *root = of_lake
    code, _, err = ask("savepoint", "restore", pipeline, "latest", "--to", "file", *root)
    assert code == 8
    assert "file is a file, and a folder is needed" in err
