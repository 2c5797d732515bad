"""What ends a run."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from headgate.driver.lease import Lease
from headgate.driver.run_control import RunControl
from headgate.lake.control.ownership import LAYERS
from headgate.lake.control.stopping import request_stop
from headgate.lake.storage.documents import read_document, write_document
from headgate.lake.storage.layout import Layout


def test_a_stop_is_heeded_if_it_was_requested_since_the_lease_was_taken(tmp_path: Path) -> None:
    """A single request is enough, even while Spark is still starting."""
    layout = Layout.of(str(tmp_path), "p")
    lease = Lease(layout, LAYERS, "p")
    control, stopping = RunControl(layout, "p", lease), list[bool]()
    request_stop(layout)
    lease.take()
    for _ in range(2):
        control.observe_stop_requests()
        stopping.append(control.is_stopping)
        request_stop(layout)
    lease.release()
    assert stopping == [False, True], "the start came after the first request"


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_was_wrong_at_a_stop_decides_nothing(tmp_path: Path, hours: int) -> None:
    """For example, the clock is set between a stop and a start, by hand or from the network."""
    layout = Layout.of(str(tmp_path), "p")
    stopping = list[bool]()
    for asked in (True, False):
        lease = Lease(layout, LAYERS, "p")
        lease.take()
        if asked:
            request_stop(layout)
            document = read_document(layout.storage, Layout.document("stop"))
            assert document is not None
            at = datetime.fromisoformat(document["requested"]) + timedelta(hours=hours)
            shifted = document | {"requested": at.isoformat()}
            write_document(layout.storage, Layout.document("stop"), shifted)
        control = RunControl(layout, "p", lease)
        control.observe_stop_requests()
        stopping.append(control.is_stopping)
        lease.release()
    assert stopping == [True, False]
