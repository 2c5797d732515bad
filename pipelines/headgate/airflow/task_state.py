"""The state of a task in Airflow, for operators and triggers."""

from __future__ import annotations

from typing import Any

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
