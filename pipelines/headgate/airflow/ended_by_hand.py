"""Whether a stream is to be stopped because a person has ended the task that supervised it.

Up to three processes decide this about one end, in any order and at the same time: the trigger of
the task, the next run of its DAG, and maintenance. All use the same rule.
"""

from __future__ import annotations

from headgate.airflow.task_state import GONE, OVER
from headgate.lake.control.claim import Claim
from headgate.lake.control.driver_requests import StopRequest


def is_to_stop(
    held: Claim | None, state: str, asked: StopRequest | None, *, if_deleted: bool = True
) -> bool:
    """``held`` is the claim of the task, ``state`` the state of the task in Airflow, and ``asked``
    the last request to stop. ``if_deleted``: whether a task that Airflow does not know was deleted.
    It may also be a task of another database.

    A request to stop before the end, which a start has followed, changes nothing. A request that
    was made for this end holds: since then, a person may have started the stream.
    """
    if held is None or held.is_over:
        # The task was not watching: it may have failed by itself.
        return False
    if asked is not None and asked.claim == held.token:
        return False
    return state in OVER and (if_deleted or state != GONE)
