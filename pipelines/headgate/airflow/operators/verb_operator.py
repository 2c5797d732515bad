"""Runs a verb of the command line in a process of its own; its output goes to the task log."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from headgate.airflow.operators.tables_task import TablesTask
from headgate.supervision.local import HEADGATE

if TYPE_CHECKING:
    from airflow.sdk import Context


_LAST_LINES = 20


def run_verb(
    words: Sequence[str], log: Callable[[str], None], variables: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a verb; its output goes to ``log``, line by line. ``variables`` are added to its
    environment. Returns the exit code, which is negative if a signal ended the process, and the
    last lines."""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with subprocess.Popen(
        [*HEADGATE, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(variables or {})},
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            log(line.rstrip("\n"))
            last.append(line)
    return process.returncode, "".join(last).strip()


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
