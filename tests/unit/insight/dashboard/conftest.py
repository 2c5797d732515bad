"""A small shop, whose tables are literal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.insight.dashboard.login import passwords
from headgate.insight.dashboard.login.throttle import Throttle
from headgate.insight.dashboard.questions.reader import Reader
from tests.support.charted import Charted, invalid, late_sale, sale
from tests.support.copies import put


@pytest.fixture(scope="package", autouse=True)
def _cheap_hashes() -> Iterator[None]:
    """A test in tests/unit/cli/test_dashboard.py logs in with the real cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_N", 1 << 4)
        yield


@pytest.fixture
def time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the throttle stands still, so no wait after a guess ends."""
    monkeypatch.setattr(Throttle.__init__, "__defaults__", (lambda: 1000.0,))


@pytest.fixture
def shop(tmp_path: Path) -> Charted:
    """Three final minutes of two channels, an open one, late rows and quarantined records."""
    return _shop(tmp_path)


@pytest.fixture(scope="session")
def still(tmp_path_factory: pytest.TempPathFactory) -> Charted:
    """Like ``shop``, but shared by tests that change nothing."""
    return _shop(tmp_path_factory.mktemp("still"))


def _shop(folder: Path) -> Charted:
    put(folder, "shop", _fill)
    return Charted(folder)


def _fill(folder: Path) -> None:
    made = Charted(folder)
    made.add("bronze/orders", [], read=20)
    made.add("silver/clean", [], silver=16, quarantined=2, duplicate=2)
    made.add(
        "quarantine/orders",
        [
            invalid(0, "unparsable", b"{oops"),
            invalid(3, "missing_id", b'{"id": null}', detail="missing: Kim 7"),
        ],
        quarantined=2,
    )
    made.add("late/sales", [late_sale(0, "app", 90.0), late_sale(1, "app", 30.0)], late=2)
    made.sell(
        open_=[sale(3, "app", 1, "5.00")],
        final=[
            sale(0, "app", 4, "40.00"),
            sale(0, "web", 2, "10.00"),
            sale(1, "app", 6, "60.00", revision=1),
            sale(2, "web", 3, "30.00"),
        ],
        pairs=18,
        late=2,
    )


@pytest.fixture(scope="session")
def reader() -> Reader:
    return Reader()
