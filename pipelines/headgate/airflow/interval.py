"""The data interval of a run, as templates for the arguments of tasks."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowFailException

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
