"""The state of a task in Airflow, and whether a stream is to be stopped because a person has ended
its task.

Up to three processes decide this about one end, in any order and at the same time: the trigger of
the task, the next run of its DAG, and maintenance. All use the same rule.
"""

from __future__ import annotations

from typing import Any

from headgate.lake.control.claim import Claim
from headgate.lake.control.driver_requests import StopRequest

GONE = "deleted"
OVER = (GONE, "failed", "success", "skipped", "removed")
"""The states of a task that a person has ended while it watched its stream. A cleared task has none
of them, also if a task before it fails then."""


def name_of(task: Any) -> tuple[str, ...]:
    """The arguments of ``state_of``: DAG, run and task, and the map index of a mapped task."""
    name = (task.dag_id, task.run_id, task.task_id)
    is_mapped = task.map_index is not None and task.map_index >= 0
    return (*name, str(task.map_index)) if is_mapped else name


def state_of(dag_id: str, run_id: str, task_id: str, map_index: str = "") -> str:
    """The state of a task now; ``deleted`` if there is no such task or run. Blocks."""
    # This import takes seconds, and DAG files import this module, too.
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    found = RuntimeTaskInstance.get_task_states(dag_id=dag_id, task_ids=[task_id], run_ids=[run_id])
    # Airflow's API names the instances of a mapped task like this.
    name = f"{task_id}_{map_index}" if map_index else task_id
    return str(found.get(run_id, {}).get(name, GONE))


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
