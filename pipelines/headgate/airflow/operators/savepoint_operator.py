"""Takes a savepoint, beside the running stream."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headgate.airflow.operators.tables_task import TablesTask

if TYPE_CHECKING:
    from airflow.sdk import Context


class SavepointOperator(TablesTask):
    """Takes a savepoint of the tables under ``root`` of the pipeline that ``file`` declares, and
    returns its id. The stream does not wait for it.

    With ``keep``, savepoints of the same ``note`` are deleted if they are neither among the
    ``keep`` newest nor younger than ``keep_for``; the last one that can be restored stays.
    """

    template_fields: Sequence[str] = ("note",)

    def __init__(
        self,
        *,
        note: str = "Airflow",
        keep: int | None = None,
        keep_for: timedelta = timedelta(days=7),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.note = note
        self.keep = keep
        self.keep_for = keep_for

    def execute(self, context: Context) -> str:
        from headgate.history.savepoints.store import create_savepoint, prune_savepoints

        now = datetime.now(UTC)
        declared, layout = self._opened()
        taken = create_savepoint(layout, declared, now, self.note)
        self.log.info("savepoint %s: %s rows", taken.id, taken.rows)
        if self.keep is not None:
            gone = prune_savepoints(
                layout, declared, now, keep=self.keep, keep_for=self.keep_for, note=self.note
            )
            self.log.info("removed: %s", ", ".join(each.id for each in gone) or "none")
        return taken.id
