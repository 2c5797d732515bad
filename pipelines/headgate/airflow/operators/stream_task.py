"""The base of operators for one stream."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator

from headgate.commands import set_place
from headgate.supervision.launcher import LOCAL, Launcher, Stream, launcher_of


class StreamTask(BaseOperator):
    """A task for the stream of the pipeline ``name``.

    :param file: the declaration.
    :param name: the name that the declaration gives the pipeline.
    :param root: the folder or URI of the tables.
    :param launcher: what starts and ends drivers, as ``module:class`` (supervision/launcher.py).
    """

    # Airflow stores only template fields in its database, where the page finds the stream of a
    # task.
    template_fields: Sequence[str] = ("file", "name", "root", "launcher")

    def __init__(
        self, *, file: str, name: str, root: str, launcher: str = LOCAL, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.file = file
        self.name = name
        self.root = root
        self.launcher = launcher

    def pre_execute(self, context: Any) -> None:
        """Render commands in the messages of this process for the stream."""
        set_place(self._stream.place)

    @property
    def _stream(self) -> Stream:
        return Stream(Path(self.file), self.name, self.root)

    @property
    def _launcher(self) -> Launcher:
        return launcher_of(self.launcher)
