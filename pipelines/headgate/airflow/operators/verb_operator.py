"""Runs a verb of the command line in a process of its own; its output goes to the task log."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from headgate.airflow.operators.tables_task import TablesTask
from headgate.supervision.local import HEADGATE

if TYPE_CHECKING:
    from airflow.sdk import Context


class VerbOperator(TablesTask):
    """Runs ``headgate VERB FILE --root ROOT``, followed by further words of ``verb``. Fails with
    its stderr if its exit code is not 0 (docs/operations.md)."""

    def __init__(self, *, verb: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.verb = tuple(verb)

    def execute(self, context: Context) -> None:
        self._opened()  # or there is nothing to do
        name, *more = self.verb
        command = [*HEADGATE, *name.split(), self.file, "--root", self.root, *more]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        for line in (done.stdout + done.stderr).splitlines():
            self.log.info(line)
        if done.returncode:
            raise AirflowException(
                f"headgate {name} {self.file}: exit code {done.returncode}\n{done.stderr.strip()}"
            )
