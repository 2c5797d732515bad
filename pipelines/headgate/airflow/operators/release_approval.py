"""Releases held versions of gold once a person has approved."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from headgate.airflow.operators.tables_task import TablesTask

if TYPE_CHECKING:
    from airflow.sdk import Context

HELD = "held"
"""The XCom key under which the task ``asks`` stores the held versions, each an encoded ``Hold``
with ``title``, ``what`` and ``why``."""
REASON = "reason"


class ReleaseApproval(ApprovalOperator):
    """Asks a person to approve or reject the release of the held versions that the task ``asks``
    found, and to give the reason. Skipped if it found none."""

    def __init__(self, *, name: str, asks: str, **kwargs: Any) -> None:
        held = f"ti.xcom_pull(task_ids='{asks}', key='{HELD}')"
        shown = (
            f"{{% for each in {held} or [] %}}* `{{{{ each.title }}}}`, "
            "{{ each.what }}: {{ each.why }}\n{% endfor %}"
        )
        # Airflow gives an operator the parameters of its DAG, too. It validates a default when the
        # task begins, so the empty reason has to be valid.
        kwargs["params"] = {REASON: Param("", type="string", title="Why")}
        super().__init__(
            subject=f"Release gold of {name} although it breaks rules?", body=shown, **kwargs
        )
        self.asks = asks

    def execute(self, context: Context) -> Any:
        if not context["ti"].xcom_pull(task_ids=self.asks, key=HELD):
            raise AirflowSkipException("the run was not asked to release anything")
        return super().execute(context)


class ReleaseOperator(TablesTask):
    """Releases exactly the versions that the task ``asks`` found held, with the reason and the
    person of the task ``approval``. Returns what was released."""

    def __init__(self, *, asks: str, approval: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asks, self.approval = asks, approval

    def execute(self, context: Context) -> str:
        from headgate.gates.documents import Hold, release
        from headgate.storage.documents import decoded

        answer = context["ti"].xcom_pull(task_ids=self.approval)
        by = (answer.get("responded_by_user") or {}).get("name") or "a user of Airflow"
        # Airflow's API takes an answer without the reason.
        if not (reason := str((answer["params_input"] or {}).get(REASON) or "").strip()):
            raise AirflowFailException(
                "it was approved without a reason, so nothing was released: clear the task "
                f"{self.approval}, and a person is asked again"
            )
        _, layout = self._opened()
        done = []
        for each in context["ti"].xcom_pull(task_ids=self.asks, key=HELD):
            hold = decoded(each, Hold)
            release(layout, hold.gate, hold.release(by, reason, datetime.now(UTC)))
            done.append(f"{hold.title}, {hold.what}")
        result = f"{self.name}: {by} released {', '.join(done)}: {reason}"
        self.log.info(result)
        return result
