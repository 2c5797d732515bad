"""The publications of a job: they follow their tables, which do not wait for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headgate.commands import pipeline_command
from headgate.errors import HeadgateError
from headgate.publish.stage import PublishStage

_KAFKAS_ERROR = re.compile(r"org\.apache\.kafka\.common\.errors\.(\w+)")

TRY_AGAIN = 60.0  # seconds after brokers did not take what was sent


class NotPublishedError(HeadgateError):
    """Brokers do not take what is to be published. Tables are complete; it is sent later."""

    exit_code: ClassVar[int] = 3


class Publications:
    """``monotonic`` is a clock in seconds."""

    def __init__(self, stages: Sequence[PublishStage], monotonic: Callable[[], float]) -> None:
        self._stages = stages
        self._monotonic = monotonic
        self._failed: dict[str, tuple[float, str]] = {}

    @property
    def trouble(self) -> str | None:
        """What was not taken, in words."""
        return "; ".join(said for _, said in self._failed.values()) or None

    def catch_up(self, now: datetime, *, at_once: bool = False) -> None:
        """Publish what is new. Where brokers do not take it, tables go on and it is tried again,
        a while later (``at_once``: now, whatever happened before)."""
        for stage in self._stages:
            name = stage.publication.name
            failed_at, _ = self._failed.get(name, (-TRY_AGAIN, ""))
            if not at_once and self._monotonic() - failed_at < TRY_AGAIN:
                continue
            try:
                stage.catch_up(now)
            except (PySparkException, Py4JError) as error:
                self._failed[name] = self._monotonic(), _told(stage, error)
            else:
                self._failed.pop(name, None)

    def require_done(self, now: datetime) -> None:
        """A last attempt. Raises NotPublishedError if something cannot be published."""
        self.catch_up(now, at_once=True)
        if self.trouble is not None:
            again = pipeline_command("run", "--once")
            raise NotPublishedError(
                f"{self.trouble}; the tables are complete, and what is missing is sent as soon as "
                "the brokers take it",
                remedy=f"see whether they listen and the topic is there, then: {again}",
            )


def _told(stage: PublishStage, error: Exception) -> str:
    """Without what Spark says of it: that may show the client's properties, secrets among them.
    The names of Kafka's errors are telling enough."""
    sink = stage.publication.sink
    servers = sink.written.get("servers", sink.servers)
    causes = ", ".join(dict.fromkeys(_KAFKAS_ERROR.findall(str(error))))
    told = f"publish {stage.publication.name}: {servers} does not take records for {sink.topic}"
    return f"{told} ({causes})" if causes else told
