"""The state of a task in Airflow, for operators and triggers."""

from __future__ import annotations

from typing import Any

GONE = "deleted"
OVER = (GONE, "failed", "success", "skipped", "removed", "upstream_failed")
"""The states of a task that is over. A cleared task has none of them."""


def name_of(task: Any) -> tuple[str, ...]:
    """What ``state_of`` takes: DAG, run and task, and the map index of a mapped task."""
    name = (task.dag_id, task.run_id, task.task_id)
    is_mapped = task.map_index is not None and task.map_index >= 0
    return (*name, str(task.map_index)) if is_mapped else name


def state_of(dag_id: str, run_id: str, task_id: str, map_index: str = "") -> str:
    """The state of a task now; ``deleted`` where there is no such task or run. Blocks."""
    # Costs seconds to import, and DAG files import this module, too.
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    found = RuntimeTaskInstance.get_task_states(dag_id=dag_id, task_ids=[task_id], run_ids=[run_id])
    # So does Airflow's API name the instances of a mapped task.
    name = f"{task_id}_{map_index}" if map_index else task_id
    return str(found.get(run_id, {}).get(name, GONE))
