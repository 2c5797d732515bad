"""Looks, before a stream is started, for what would keep it from running."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowException

from headgate.airflow.operators.stream_task import StreamTask
from headgate.spec.commands import pipeline_command, rendered
from headgate.spec.load import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.sdk import Context

    from headgate.spec.model import Pipeline
    from headgate.supervision.launcher import Stream


class Preflight(StreamTask):
    """What ``headgate doctor`` and ``headgate plan`` find, and whether the source is there. Where
    the stream runs already it only tells."""

    def execute(self, context: Context) -> None:
        stream = self._stream
        found = tuple(rendered(each) for each in _problems(load(stream.file), stream))
        for problem in found:
            self.log.warning(problem)
        jobs = self._launcher.probe(stream, datetime.now(UTC))
        if found and not any(job.is_alive for job in jobs):
            raise AirflowException("\n".join(found))
        self.log.info("%s: %s", self.name, "nothing is in its way" if not found else "it runs")


def _problems(declared: Pipeline, stream: Stream) -> Iterator[str]:
    from headgate.doctor import examine
    from headgate.savepoints.deployment import deployment

    for finding in examine(Path(stream.root)):
        if not finding.ok:
            yield f"{finding.name}: {finding.found}, needed: {finding.needed}. {finding.remedy}"
    for plan in deployment(stream.layout, declared).tables:
        if plan.verdict in ("refuse", "reread", "rebuild"):
            why = "; ".join(plan.reasons)
            yield f"{plan.table}: {plan.verdict}: {why}. {pipeline_command('upgrade')}"
    files = declared.source.files
    if files is not None and "://" not in files.path and Path(files.path).is_file():
        yield f"the landing folder {files.path} is a file"
