"""What `headgate status` tells a person to type after a failure."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headgate.lake.control.driver_reports import Failure, record_failure
from headgate.lake.control.driver_requests import request_stop
from headgate.lake.control.ownership import Owner
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake
from tests.unit.supervision.conftest import lease

OfLake = tuple[str, str, str]
NOW = datetime(2026, 5, 4, 13, tzinfo=UTC)


@pytest.mark.parametrize(
    ("code", "starts", "ends"),
    [(2, False, 2), (3, False, 3), (5, False, 5), (1, True, 7), (8, True, 7)],
)
def test_a_start_is_named_only_if_it_may_help(
    ask: Ask, lake: Lake, of_lake: OfLake, code: int, starts: bool, ends: int
) -> None:
    record_failure(lake.layout, Failure(code, "it broke", "correct it", NOW))
    found, out, _ = ask("status", *of_lake)
    assert found == ends
    assert f"exit code {code}: it broke\ncorrect it\n" in out
    assert (f"headgate start {of_lake[0]}" in out) == starts


GONE = Owner(pid=2**22 + 1, host=Owner.here().host, started=0.0)
FAR = Owner(pid=1, host="another-host", started=0.0)


@pytest.mark.parametrize("now", [(), ("--now",)])
def test_what_died_and_is_stopped_then_needs_no_start(
    ask: Ask, lake: Lake, of_lake: OfLake, now: tuple[str, ...]
) -> None:
    """A supervisor may restart on exit code 7, so ``status`` must not return it after a stop."""
    lease(lake.layout, GONE)
    code, out, _ = ask("status", *of_lake)
    assert (code, "dead" in out, "headgate start" in out) == (7, True, True)
    assert ask("stop", *of_lake, *now)[:2] == (0, "tiny: not running\n")
    code, out, _ = ask("status", *of_lake)
    assert (code, "stopped" in out, "headgate start" in out) == (0, True, False)
    said = last_object(ask("status", *of_lake, "--json")[1])
    assert (said["state"], said["ended"]) == ("stopped", "stopped")


def test_what_is_silent_and_was_asked_to_stop_needs_no_start(
    ask: Ask, lake: Lake, of_lake: OfLake
) -> None:
    lease(lake.layout, FAR)
    assert ask("status", *of_lake)[0] == 7
    request_stop(lake.layout)
    code, out, _ = ask("status", *of_lake)
    assert (code, "headgate start" in out) == (0, False)
    assert f"does not respond:\nheadgate stop {of_lake[0]}" in out
