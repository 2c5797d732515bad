"""Runs a verb of the command line in a process of its own; its output goes to the task log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from headgate.airflow.operators.tables_task import TablesTask
from headgate.airflow.operators.verb import run_verb

if TYPE_CHECKING:
    from airflow.sdk import Context


class VerbOperator(TablesTask):
    """Runs ``headgate VERB FILE --root ROOT``, followed by further words of ``verb``. Fails with
    its last lines if its exit code is not 0 (docs/operations.md)."""

    def __init__(self, *, verb: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.verb = tuple(verb)

    def execute(self, context: Context) -> None:
        self._opened()  # skips the task if the pipeline has never run
        name, *more = self.verb
        words = [*name.split(), self.file, "--root", self.root, *more]
        code, said = run_verb(words, self.log.info)
        if code:
            raise AirflowException(f"headgate {name} {self.file}: exit code {code}\n{said}")
