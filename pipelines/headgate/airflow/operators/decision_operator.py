"""Releases held versions of gold, or gives them up, once a person has approved."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators.rows_approval import REASON, approved
from headgate.airflow.operators.tables_task import TablesTask

if TYPE_CHECKING:
    from airflow.sdk import Context

    from headgate.declaration.model import Pipeline
    from headgate.flow.gates.documents import Hold
    from headgate.lake.storage.layout import Layout

RELEASE, REJECT = "release", "reject"


class DecisionOperator(TablesTask):
    """Carries out what a person has approved in the task ``approval``, for exactly the held
    versions that the task ``asks`` has found: a release, or a rejection. The person and the reason
    are kept. Returns what was done."""

    def __init__(self, *, asks: str, approval: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asks, self.approval = asks, approval

    def execute(self, context: Context) -> str:
        from headgate.flow.gates.documents import Hold
        from headgate.lake.storage.documents import decoded

        about, answer = approved(context, self.asks, self.approval)
        by = (answer.get("responded_by_user") or {}).get("name") or "a user of Airflow"
        # Airflow's API takes an answer without the reason.
        if not (reason := str((answer["params_input"] or {}).get(REASON) or "").strip()):
            raise AirflowFailException(
                "it was approved without a reason, so nothing was changed: clear the task "
                f"{self.approval}, and a person is asked again"
            )
        declared, layout = self._opened()
        prepare = _release if about["action"] == RELEASE else _rejection
        held = [(decoded(each, Hold), each["what"]) for each in about["held"]]
        # All of it can be carried out, or nothing is.
        for carry_out in [prepare(declared, layout, hold, by, reason) for hold, _ in held]:
            carry_out()
        verb = "released" if about["action"] == RELEASE else "gave up"
        done = "; ".join(f"{hold.title}, {what}" for hold, what in held)
        result = f"{self.name}: {by} {verb} {done}: {reason}"
        self.log.info(result)
        return result


def _release(
    declared: Pipeline, layout: Layout, hold: Hold, by: str, reason: str
) -> Callable[[], None]:
    """Raises AirflowFailException if the version is no longer held."""
    from headgate.flow.gates.documents import release, still_held

    if not still_held(layout, declared, hold):
        raise AirflowFailException(
            f"{hold.title} is not held by this version any more: it has become visible, was given "
            "up, or the table was reset. There is nothing to release"
        )
    return partial(release, layout, hold.gate, hold.release(by, reason, datetime.now(UTC)))


def _rejection(
    declared: Pipeline, layout: Layout, hold: Hold, by: str, reason: str
) -> Callable[[], None]:
    """Raises AirflowFailException if the version is no longer held, and what ``rejectable``
    raises."""
    from headgate.flow.gates.documents import hold_reason, reject
    from headgate.insight.status.held_versions import rejectable, rejection

    now = hold_reason(layout, hold.gate)
    if now is None or (now.operation, now.generation) != (hold.operation, hold.generation):
        raise AirflowFailException(
            f"{hold.title} is not held by this change any more, so nothing was given up"
        )
    operation = rejectable(declared, layout, hold)
    given = rejection(hold, operation, by, reason, datetime.now(UTC))
    return partial(reject, layout, given)
