"""The conf of a run, which has the values of its DAG's parameters, and its data interval."""

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


FROM = "{{ data_interval_start.isoformat() if data_interval_start else '' }}"
TO = "{{ data_interval_end.isoformat() if data_interval_end else '' }}"
"""Both are empty in a run without a data interval: a run that is triggered by hand may have
none."""


def require_interval(dag_id: str, *times: str) -> None:
    """Raises AirflowFailException if a time is empty."""
    if not all(times):
        raise AirflowFailException(
            "this run has no data interval, so its hours are unknown. Run a past "
            f"interval: airflow backfill create --dag-id {dag_id} --from-date … --to-date …"
        )
