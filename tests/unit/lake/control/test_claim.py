"""Who supervises a stream."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from headgate.lake.control.claim import SUPERVISOR, Claim, claim, claimed, give_up, take_up
from headgate.lake.storage.documents import DamagedDocumentError, write_document
from headgate.lake.storage.layout import Layout

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
ONE = Claim("one", ("dag", "run 1", "task"), NOON)
TWO = Claim("two", ("dag", "run 2", "task"), NOON)


def test_the_newest_claim_holds(layout: Layout) -> None:
    assert claimed(layout) is None
    claim(layout, ONE)
    assert claimed(layout) == ONE
    claim(layout, TWO)
    assert claimed(layout) == TWO


def test_a_document_that_is_no_claim_is_damaged(layout: Layout) -> None:
    write_document(layout.storage, SUPERVISOR, {"token": "one", "by": ["dag"], "is_over": False})
    with pytest.raises(DamagedDocumentError, match=r"supervisor\.json: .* field `since`"):
        claimed(layout)


def test_only_its_own_claim_is_given_up(layout: Layout) -> None:
    claim(layout, ONE)
    give_up(layout, "two")
    assert claimed(layout) == ONE
    give_up(layout, "one")
    assert claimed(layout) == replace(ONE, is_over=True)


def test_only_its_own_claim_is_taken_up_again(layout: Layout) -> None:
    take_up(layout, "one")
    assert claimed(layout) is None
    claim(layout, replace(ONE, is_over=True, reported=NOON))
    take_up(layout, "two")
    assert claimed(layout) == replace(ONE, is_over=True, reported=NOON)
    take_up(layout, "one")
    assert claimed(layout) == replace(ONE, reported=NOON)


def test_the_failure_that_was_reported_last_is_kept(layout: Layout) -> None:
    claim(layout, ONE)
    give_up(layout, "one", NOON)
    assert claimed(layout) == replace(ONE, is_over=True, reported=NOON)
    claim(layout, replace(TWO, reported=NOON))
    give_up(layout, "two")
    assert claimed(layout) == replace(TWO, is_over=True, reported=NOON)
