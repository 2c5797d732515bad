"""The approvals of persons in DAGs."""

from __future__ import annotations

from airflow.sdk import BaseOperator, TriggerRule
from airflow.sdk.definitions.mappedoperator import MappedOperator

from headgate.airflow.dags.common import RETRIES
from headgate.airflow.operators.rows_approval import RowsApproval

IF_APPROVED = TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS
"""For what follows an approval, which has an instance for each attempt of the task that asks: all
but one are skipped, and that one, too, if the person rejects."""


def approval(task_id: str, asks: BaseOperator, *, needs_reason: bool = False) -> MappedOperator:
    """Asks a person what the task ``asks`` returns."""
    return RowsApproval.partial(task_id=task_id, needs_reason=needs_reason, **RETRIES).expand(
        question=asks.output
    )
