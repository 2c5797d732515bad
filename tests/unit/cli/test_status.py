"""What `headgate status` tells a person to type after a failure."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headgate.storage.failure import Failure, record_failure
from tests.unit.cli.conftest import Ask
from tests.unit.ledger.conftest import Lake

OfLake = tuple[str, str, str]
NOW = datetime(2026, 5, 4, 13, tzinfo=UTC)


@pytest.mark.parametrize(
    ("code", "starts", "ends"),
    [(2, False, 2), (3, False, 3), (5, False, 5), (1, True, 7), (8, True, 7)],
)
def test_a_start_is_named_only_if_it_may_help(
    ask: Ask, lake: Lake, of_lake: OfLake, code: int, starts: bool, ends: int
) -> None:
    record_failure(lake.layout, Failure(code, "it broke", "mend it", NOW))
    found, out, _ = ask("status", *of_lake)
    assert found == ends
    assert f"exit code {code}: it broke\nmend it\n" in out
    assert (f"headgate start {of_lake[0]}" in out) == starts
