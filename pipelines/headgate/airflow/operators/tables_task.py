"""The base of operators on a pipeline's tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from headgate.airflow.connections import require_connections, variables_of
from headgate.commands import set_place
from headgate.lake.storage.layout import Layout
from headgate.supervision.launcher import Stream

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline


class TablesTask(BaseOperator):
    """A task on the tables under ``root`` of the pipeline that ``file`` declares. ``name`` labels a
    mapped task. ``connections`` has environment variables of the processes that the task starts and
    that need secrets, each with a field of one of Airflow's connections (``build_dags``)."""

    def __init__(
        self,
        *,
        file: str,
        root: str,
        name: str = "",
        connections: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        require_connections(connections or {})
        self.connections = dict(connections or {})
        self.file = file
        self.root = root
        self.name = name

    def pre_execute(self, context: Any) -> None:
        """Render commands in the messages of this process for the pipeline."""
        set_place(self._stream.place)

    @property
    def _stream(self) -> Stream:
        return Stream(Path(self.file), self.name, self.root)

    def _variables(self) -> dict[str, str]:
        """The values of ``connections`` now. Raises NoConnectionError."""
        return variables_of(self.connections)

    def _declared(self) -> Pipeline:
        """Load the declaration, without secrets: no task here uses a sink or reads a source. Raises
        DeclarationError."""
        from headgate.declaration.load import load

        return load(self.file, needs_secrets=False)

    def _opened(self) -> tuple[Pipeline, Layout]:
        """Load the declaration. Raises DeclarationError, and AirflowSkipException if the pipeline
        has never run."""
        declared = self._declared()
        layout = Layout.of(self.root, declared.name)
        if not layout.storage.folders("bronze"):
            raise AirflowSkipException(f"the pipeline has never run under {layout.storage.root}")
        return declared, layout
