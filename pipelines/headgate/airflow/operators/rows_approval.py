"""Asks a person to approve what changes rows of gold, in a form that shows these rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

if TYPE_CHECKING:
    from airflow.sdk import Context

REASON = "reason"


class Question(TypedDict):
    """``text`` is Markdown. ``about`` is what the answer decides about."""

    subject: str
    text: str
    about: Any


Questions = list[Question | None]
"""What a task asks: the question of its last attempt, after a None for each earlier one."""


class RowsApproval(ApprovalOperator):
    """Asks one question. The operator is expanded over the questions of another task; it is skipped
    if there is none, and if the person rejects.

    Airflow 3.3 keeps the text of the first question of a task that is cleared. So each attempt of
    the task that asks has a question of its own here, and an answer to an earlier one has no
    effect."""

    def __init__(
        self, *, question: Question | None, needs_reason: bool = False, **kwargs: Any
    ) -> None:
        # Airflow gives an operator the parameters of its DAG, too. It validates a default when the
        # task begins, so the empty reason has to be valid.
        kwargs["params"] = {REASON: Param("", type="string", title="Why")} if needs_reason else {}
        super().__init__(subject="", **kwargs)
        self.question = question

    def execute(self, context: Context) -> Any:
        question = self._newest()
        # Not before: Airflow renders these as templates, and the rows may have anything in them.
        self.subject, self.body = question["subject"], question["text"]
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        self._newest()
        if event.get("chosen_options") == [self.REJECT]:
            raise AirflowSkipException("it was rejected, so nothing is changed")
        return super().execute_complete(context, event)

    def _newest(self) -> Question:
        if self.question is None:
            raise AirflowSkipException("a later attempt asks again, about newer rows")
        return self.question


def asked(context: Context, question: Question | None) -> Questions:
    """What a task returns to ask a question, or none after it may have asked before."""
    return [*[None] * (context["ti"].try_number - 1), question]


def approved(context: Context, asks: str, approval: str) -> tuple[Any, Mapping[str, Any]]:
    """What the newest question of the task ``asks`` is about, and the answer that approves it, from
    the task ``approval``. Raises AirflowFailException if it is not approved."""
    questions: Questions = context["ti"].xcom_pull(task_ids=asks) or []
    newest, index = (questions or [None])[-1], len(questions) - 1
    answer = context["ti"].xcom_pull(task_ids=approval, map_indexes=index) if newest else None
    if newest is None or not answer:
        raise AirflowFailException(
            f"its newest rows are not approved: clear the task {asks}, and a person is asked again"
        )
    return newest["about"], answer
