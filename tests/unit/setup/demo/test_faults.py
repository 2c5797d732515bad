"""The oracle puts each fault of the generator where the rules say."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from headgate.setup.demo.generator import KINDS, bids
from tests.oracle.account import derive
from tests.oracle.rules import Rules, SilverRules, SourceRecord

START = datetime(2026, 5, 4, tzinfo=UTC)
BIDS = Rules(
    event_id=("event_id",),
    time_column="event_time",
    time_format="iso",
    schema={
        "event_id": "string",
        "auction": "bigint",
        "bidder": "bigint",
        "price": "decimal(18,2)",
        "channel": "string",
        "url": "string",
        "event_time": "timestamp",
    },
    silver={"clean_bids": SilverRules()},
    gold={},
    within=timedelta(minutes=10),
)
REASONS = {
    "cut": "unparsable",
    "not_an_object": "not_an_object",
    "without_id": "missing_id",
    "without_time": "missing_time",
    "time_without_zone": "unparsable_time",
    "price_as_words": "wrong_type",
    "auction_as_object": "wrong_type",
    "two_documents": "unparsable",
    "invalid_utf8": "unparsable",
}


def test_every_kind_of_malformed_line_has_its_reason() -> None:
    (piece,) = bids(1, 7, START, 100)
    reasons = {
        kind: derive([SourceRecord(0, 0, spoil(piece.lines[0]), piece.now)], BIDS).quarantine
        for kind, spoil in KINDS.items()
    }
    assert {kind: row["reason"] for kind, (row,) in reasons.items()} == REASONS


@pytest.mark.slow
def test_a_stream_of_bids_has_the_faults_that_it_was_made_with() -> None:
    records = [
        SourceRecord(0, n << 36 | i, line, piece.now)
        for n, piece in enumerate(bids(20_000, 7, START, 100, slice_events=2_000))
        for i, line in enumerate(piece.lines)
    ]
    tables = derive(records, BIDS)
    reasons = Counter(row["reason"] for row in tables.quarantine)
    assert set(reasons) == {*REASONS.values(), "future"}
    repeated = len(records) - len({record.value for record in records})
    assert sum(row["duplicate"] for row in tables.bronze) == repeated
    assert len(tables.silver["clean_bids"]) + reasons.total() + repeated == len(records)
