"""Commits that are prepared in parallel."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from headgate.lake.tables.staging import Prepared, prepare_together


def prepared(name: str) -> Prepared:
    return cast(Prepared, name)


def test_they_come_in_their_order_and_those_with_nothing_to_do_are_left_out() -> None:
    found = prepare_together(lambda: prepared("a"), lambda: None, lambda: prepared("c"))
    assert found == (prepared("a"), prepared("c"))


@pytest.mark.parametrize("first", [True, False])
def test_an_error_waits_for_the_others(first: bool) -> None:
    """After the error the caller may end, so no other commit may still be written."""
    fails, ended, never = threading.Event(), threading.Event(), threading.Event()

    def failing() -> Prepared:
        fails.set()
        raise OSError("no space")

    def slow() -> Prepared:
        assert fails.wait(10) or not first
        never.wait(0.05)  # the caller has the error by then, if it does not wait
        ended.set()
        return prepared("b")

    with pytest.raises(OSError, match="no space"):
        prepare_together(*((failing, slow) if first else (slow, failing)))
    assert ended.is_set()
