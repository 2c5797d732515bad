"""Checks the machine before a stream is started."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowException

from headgate.airflow.operators.stream_task import StreamTask
from headgate.commands import rendered

if TYPE_CHECKING:
    from airflow.sdk import Context


class Preflight(StreamTask):
    """Runs the checks of ``headgate doctor``. If the stream runs already, problems are only logged.
    Problems of declaration, source or tables are found by the driver and reported by
    ``supervise``."""

    def execute(self, context: Context) -> None:
        from headgate.doctor import examine

        stream = self._stream
        found = [
            f"{one.name}: {one.found}, needed: {one.needed}. {rendered(one.remedy)}"
            for one in examine(Path(stream.root))
            if not one.ok
        ]
        for problem in found:
            self.log.warning(problem)
        jobs = self._launcher.probe(stream, datetime.now(UTC))
        if found and not any(job.is_alive for job in jobs):
            raise AirflowException("\n".join(found))
        self.log.info("%s: %s", self.name, "no problems found" if not found else "it runs")
