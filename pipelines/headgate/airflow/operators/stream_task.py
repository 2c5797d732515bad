"""The base of operators for one stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.airflow.operators.tables_task import TablesTask
from headgate.supervision.launcher import LOCAL, Launcher, launcher_of


class StreamTask(TablesTask):
    """A task for the stream of the pipeline ``name``.

    :param file: the declaration.
    :param name: the name that the declaration gives the pipeline.
    :param root: the folder or URI of the tables.
    :param launcher: what starts and ends drivers, as ``module:class`` (supervision/launcher.py).
    """

    # Airflow stores only template fields in its database, where the page finds the stream of a
    # task.
    template_fields: Sequence[str] = ("file", "name", "root", "launcher")

    def __init__(self, *, name: str, launcher: str = LOCAL, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.launcher = launcher

    @property
    def _launcher(self) -> Launcher:
        return launcher_of(self.launcher)
