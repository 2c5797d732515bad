"""The state of a task in Airflow, for operators and triggers."""

from __future__ import annotations

GONE = "deleted"
OVER = (GONE, "failed", "success", "skipped", "removed", "upstream_failed")
"""The states of a task that is over. A cleared task has none of them."""


def state_of(dag_id: str, run_id: str, task_id: str) -> str:
    """The state of an unmapped task now; ``deleted`` where there is no such task or run. Blocks."""
    # Costs seconds to import, and DAG files import this module, too.
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    found = RuntimeTaskInstance.get_task_states(dag_id=dag_id, task_ids=[task_id], run_ids=[run_id])
    return str(found.get(run_id, {}).get(task_id, GONE))
