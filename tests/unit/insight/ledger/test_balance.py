"""The accounting law, checked with the counts of the commits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.errors import HeadgateError
from headgate.insight.ledger import balance
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import DamagedFileError, LogGapError
from tests.support.damage import HARMS, harm
from tests.unit.insight.ledger.conftest import Lake, bronze, fill, silver


def differences(lake: Lake) -> list[tuple[str, str]]:
    found = balance(lake.layout, lake.pipeline).differences
    return [(d.table, d.law) for d in found]


def test_every_event_has_its_place(lake: Lake) -> None:
    account = balance(lake.layout, lake.pipeline)
    assert account.balanced
    (good,) = account.silver
    assert (good.read, good.duplicate, good.quarantined, good.silver, good.filtered) == (
        6, 1, 1, 3, 1,
    )  # fmt: skip
    (gold,) = account.gold
    assert (gold.pairs, gold.folded, gold.late, gold.rows, gold.final) == (3, 2, 1, 1, 1)


def test_what_was_corrected_is_told_as_of_the_batch_that_silver_has(lake: Lake) -> None:
    """Batch 2 of bronze corrects the record in quarantine; silver has not processed it."""
    account = balance(lake.layout, lake.pipeline)
    assert (account.quarantined, account.corrected) == (1, 0)
    counts = {"silver": 1, "filtered": 0, "quarantined": 0, "duplicate": 0}
    lake.commit("silver/good", 2, [silver(6)], counts)
    account = balance(lake.layout, lake.pipeline)
    assert account.as_dict()["corrected"] == account.silver[0].corrected == 1


def test_lag_is_shown_and_is_no_difference(lake: Lake) -> None:
    account = balance(lake.layout, lake.pipeline)
    assert account.batches == 2
    assert account.read == 7
    assert [s.lag for s in account.silver] == [1]
    assert [g.lag for g in account.gold] == [1]


def test_a_side_table_ahead_of_its_dense_table_is_no_difference(lake: Lake) -> None:
    """A crash between two commits leaves quarantine one batch ahead of silver."""
    lake.commit("quarantine/events", 2, [{"partition": 0, "offset": 6}], {"quarantined": 1})
    assert balance(lake.layout, lake.pipeline).balanced


def test_a_silver_count_that_misses_an_event(empty_lake: Lake) -> None:
    counts = {"silver": 3, "filtered": 0, "quarantined": 1, "duplicate": 1}
    fill(empty_lake, silver_counts=counts)
    assert differences(empty_lake) == [
        ("silver/good", "read = duplicate + quarantined + rejected + silver + filtered")
    ]


def test_a_row_of_silver_that_the_commit_did_not_count(empty_lake: Lake) -> None:
    fill(empty_lake, silver_rows=(3, 4))
    account = balance(empty_lake.layout, empty_lake.pipeline)
    (difference,) = account.differences
    assert difference.table == "silver/good"
    assert (difference.expected, difference.found) == (3, 2)


def test_quarantine_lacks_a_record_that_silver_refused(empty_lake: Lake) -> None:
    fill(empty_lake, quarantine_rows=())
    assert differences(empty_lake) == [("silver/good", "quarantined = rows of quarantine")]


def test_a_late_pair_without_its_row(empty_lake: Lake) -> None:
    fill(empty_lake, late_rows=())
    assert differences(empty_lake) == [("gold/per_minute", "late = rows of its late table")]


def test_gold_that_skipped_silver_rows(lake: Lake) -> None:
    """Every silver row is in exactly one tumbling window, so nothing may be left out."""
    rows = [bronze(6)]
    lake.commit("bronze/events", 3, rows, {"read": 1, "duplicate": 0, "differing": 0})
    counts = {"silver": 2, "filtered": 0, "quarantined": 0, "duplicate": 0}
    lake.commit("silver/good", 3, [silver(6), silver(7)], counts)
    lake.commit("gold/per_minute", 3, [], {"pairs": 1, "folded": 1, "late": 0, "final": 0})
    assert differences(lake) == [("gold/per_minute", "pairs = silver rows × windows a row")]


def test_a_duplicate_of_bronze_that_silver_counted_as_something_else(empty_lake: Lake) -> None:
    counts = {"silver": 3, "filtered": 2, "quarantined": 1, "duplicate": 0}
    fill(empty_lake, silver_counts=counts)
    assert differences(empty_lake) == [("silver/good", "duplicates of bronze")]


@pytest.mark.parametrize(
    ("counts", "law"),
    [
        ({"folded": 0}, "pairs = folded + late"),
        ({"final": 1}, "final rows = rows of its final files"),
        ({"replayed": 1}, "replayed = marked rows of its late table"),
    ],
)
def test_gold_that_counted_wrongly(lake: Lake, counts: Mapping[str, int], law: str) -> None:
    _process_second(lake, counts)
    assert differences(lake) == [("gold/per_minute", law)]


def test_a_replayed_row_is_folded_and_not_late_any_more(lake: Lake) -> None:
    lake.commit("late/per_minute", 2, [], {"replayed": 1})
    _process_second(lake, {"replayed": 1})
    account = balance(lake.layout, lake.pipeline)
    assert account.balanced
    (gold,) = account.gold
    assert (gold.pairs, gold.folded, gold.late, gold.replayed) == (4, 4, 0, 1)


def _process_second(lake: Lake, counts: Mapping[str, int]) -> None:
    passed = {"silver": 1, "filtered": 0, "quarantined": 0, "duplicate": 0}
    lake.commit("silver/good", 2, [silver(6)], passed)
    lake.commit("gold/per_minute", 2, [], {"pairs": 1, "folded": 1, "late": 0, **counts})


def test_files_that_were_not_read_are_listed_with_the_reason(lake: Lake) -> None:
    """Events are numbered, because neither their order in the log nor the clock shows the last
    one."""
    events = [
        {"event": 3, "sequence": 2, "path": "b.gz", "status": "set_aside", "reason": "cut"},
        {"event": 2, "sequence": 2, "path": "b.gz", "status": "recorded", "reason": None},
        {"event": 1, "sequence": 1, "path": "a.json", "status": "recorded", "reason": None},
    ]
    seen = datetime(2026, 3, 1, tzinfo=UTC)
    times = {"modified": seen, "at": seen}
    lake.commit("_headgate/files/events", 2, [event | times for event in events], {"files": 2})
    account = balance(lake.layout, lake.pipeline)
    (source,) = account.sources
    assert source.files is not None
    assert [(f.sequence, f.path, f.status, f.reason) for f in source.files] == [
        (2, "b.gz", "set_aside", "cut")
    ]
    assert account.balanced


@pytest.mark.parametrize("how", HARMS)
def test_a_damaged_log_of_files_is_named(lake: Lake, tmp_path: Path, how: str) -> None:
    event = {"event": 1, "sequence": 1, "path": "a.json", "status": "recorded", "reason": None}
    lake.commit("_headgate/files/events", 2, [event], {"files": 1})
    (file,) = tmp_path.rglob("_headgate/files/events/data/**/*.parquet")
    harm(file, how)
    with pytest.raises(DamagedFileError, match="_headgate/files/events"):
        balance(lake.layout, lake.pipeline)


def test_a_pipeline_that_never_ran_is_an_error_with_the_next_command(
    lake: Lake, tmp_path: Path
) -> None:
    with pytest.raises(HeadgateError, match="no tables") as refused:
        balance(Layout.of(str(tmp_path / "elsewhere"), "tiny"), lake.pipeline)
    assert "headgate run" in refused.value.remedy


def test_a_log_that_does_not_reach_back_is_named(lake: Lake) -> None:
    storage = lake.layout.storage
    storage.remove("bronze/events/_delta_log/00000000000000000001.json")
    with pytest.raises(LogGapError, match="bronze/events"):
        balance(lake.layout, lake.pipeline)


def test_as_dict_has_every_table_by_name(lake: Lake) -> None:
    document = balance(lake.layout, lake.pipeline).as_dict()
    assert document["balanced"] is True
    assert document["silver"]["good"]["filtered"] == 1
    assert document["gold"]["per_minute"]["silver"] == "good"
    assert "table" not in document["gold"]["per_minute"]


@pytest.mark.slow
def test_no_spark_is_loaded() -> None:
    code = "import sys, headgate.insight.ledger.by_id; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
