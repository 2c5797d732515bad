"""What ends a run."""

from __future__ import annotations

from pathlib import Path

from headgate.jobs.lease import Lease
from headgate.jobs.run_control import RunControl
from headgate.storage.layout import Layout
from headgate.storage.ownership import LAYERS
from headgate.storage.stopping import request_stop


def test_a_stop_is_heeded_if_it_was_requested_since_the_lease_was_taken(tmp_path: Path) -> None:
    """Spark may still be starting then: who asks only once is heeded, too."""
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
