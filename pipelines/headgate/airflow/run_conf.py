"""The conf of a run: the values of its DAG's parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowFailException

from headgate.declaration.names import nearest

if TYPE_CHECKING:
    from airflow.sdk import Context


def require_known(context: Context) -> None:
    """Raises AirflowFailException if the run's conf has a key that is no parameter of its DAG:
    Airflow ignores such a key. For ``pre_execute`` of the first tasks."""
    known = [*context["dag"].params]
    unknown = [key for key in context["dag_run"].conf or {} if key not in known]
    if unknown:
        meant = [near for key in unknown if (near := nearest(key, known)) is not None]
        raise AirflowFailException(
            f"the conf of this run has {', '.join(map(repr, unknown))}, but the DAG takes only: "
            f"{', '.join(known)}. Nothing was done"
            + (f"; did you mean {' and '.join(meant)}?" if meant else "")
        )
