"""Takes a savepoint, beside the running stream."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headgate.airflow.operators.tables_task import TablesTask

if TYPE_CHECKING:
    from airflow.sdk import Context


class SavepointOperator(TablesTask):
    """Returns the id of a savepoint of the pipeline that ``file`` declares, of its tables under
    ``root``. Nothing waits for it.

    With ``keep``, older ones of the same ``note`` are forgotten: those that are neither among so
    many newest nor younger than ``keep_for``, and never the last that can be restored.
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
        from headgate.savepoints.store import create, prune

        now = datetime.now(UTC)
        declared, layout = self._opened()
        taken = create(layout, declared, now, self.note)
        self.log.info("savepoint %s: batch %s, %s rows", taken.id, taken.n, taken.rows)
        if self.keep is not None:
            gone = prune(
                layout, declared, now, keep=self.keep, keep_for=self.keep_for, note=self.note
            )
            self.log.info("forgotten: %s", ", ".join(each.id for each in gone) or "none")
        return taken.id
