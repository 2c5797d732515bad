"""A project with one pipeline in a real Airflow, and what can be done to it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.flow.sources.files.log import FilesLog
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.final_periods.periods import HOUR
from headgate.insight.ledger.by_id import by_id
from headgate.lake.control.driver_reports import Failure, last_failure
from headgate.lake.control.driver_requests import pause, resume
from headgate.lake.control.ownership import Owner
from headgate.lake.storage.layout import Layout
from headgate.supervision.job_state import JobState, probe
from tests.support.airflow import Airflow
from tests.support.declared import source_of
from tests.support.events import reading, readings
from tests.support.landing import ARRIVED, Landing
from tests.support.readings import NOON

GOLD, STREAM, CONTROL = "readings__gold", "readings__stream", "readings__control"
SUPERVISE = "supervise"
"""The task of STREAM."""
TOKEN = "SITE_TOKEN"
"""The environment variable of the driver whose value is only in a connection of Airflow."""
_STREAMS = """
from pathlib import Path
from headgate.airflow import build_dags

def tell(what):
    with Path({told!r}).open("a") as told:
        print(what, file=told)

globals().update(build_dags(
    "pipelines",
    owner="data",
    tags=["site"],
    default_args={{"on_failure_callback": lambda it: tell(f"task {{it['ti'].task_id}}")}},
    on_failure_callback=lambda it: tell(f"run {{it['dag'].dag_id}}"),
    connections={{{token!r}: "site.password"}},
))
"""


def streams_file(folder: Path) -> str:
    """A file that builds the DAGs of a site, with what a user attaches to them: callbacks write to
    the file that ``Site.told`` reads."""
    return _STREAMS.format(told=str(folder / "told"), token=TOKEN)


class Site:
    """A project with one pipeline, and its DAGs in a real Airflow."""

    def __init__(
        self, folder: Path, airflow: Airflow, declared: Pipeline, secret: str = ""
    ) -> None:
        self.airflow = airflow
        self.secret = secret
        self.folder = folder
        self.declared = declared
        self.layout = Layout.of(str(folder / "lake"), declared.name)
        self.landing = Landing(folder / "landing")
        self._delivered = 0
        self._events = 0

    def connect(self) -> None:
        """Create the connection that has the secret."""
        connection = {"connection_id": "site", "conn_type": "generic", "password": self.secret}
        self.airflow.ask("POST", "/connections", connection)

    def told(self) -> list[str]:
        """What the callbacks have written."""
        file = self.folder / "told"
        return file.read_text().splitlines() if file.exists() else []

    def deliver(self, *events: bytes, arrived: datetime = ARRIVED) -> int:
        """Deliver one more file. Returns the number of events so far."""
        self._delivered += 1
        sent = events or tuple(readings(40, seed=self._delivered))
        self.landing.write(f"{self._delivered:03d}.json", b"\n".join(sent), arrived)
        self._events += len(sent)
        return self._events

    def lose(self) -> Failure:
        """Delete a recorded file before it is read. Returns the failure of the stream."""
        before = self._events
        pause(self.layout, datetime.now(UTC))
        self.deliver()
        path = f"{self._delivered:03d}.json"
        self.airflow.wait(lambda: path in self._listed(), "it is not listed")
        (self.folder / "landing" / path).unlink()
        self._events = before
        resume(self.layout)
        self.airflow.wait(lambda: last_failure(self.layout), "it has not failed")
        failure = last_failure(self.layout)
        assert failure is not None
        return failure

    def _listed(self) -> set[str]:
        log = FilesLog.of(self.layout.storage, self.declared.name, source_of(self.declared).name)
        log.load()
        return {file.path for file in log.files}

    @property
    def layout_root(self) -> str:
        return str(self.folder / "lake")

    @property
    def jobs(self) -> tuple[JobState, ...]:
        return probe(self.layout, datetime.now(UTC))

    @property
    def owner(self) -> Owner | None:
        """The owner of the one driver that runs with its tables open; None if there is none."""
        alive = [job for job in self.jobs if job.is_alive and job.is_open]
        assert len(alive) <= 1
        return alive[0].owner if alive else None

    @property
    def batch(self) -> int:
        """The highest batch id of its sources."""
        return max((each.n for job in self.jobs for each in job.sources.values()), default=0)

    def drivers(self) -> list[int]:
        """Every process that runs the pipeline, also one that no lease or task refers to."""
        found = []
        for process in psutil.process_iter(["pid", "cmdline"]):
            line = process.info["cmdline"] or []
            if "headgate.cli" in line and str(self.declared.file) in line:
                found.append(process.info["pid"])
        return found

    def wait_for_owner(self, other_than: Owner | None = None) -> Owner:
        self.airflow.wait(
            lambda: self.owner not in (None, other_than),
            f"no driver came: {self.airflow.said(STREAM, SUPERVISE)}",
        )
        owner = self.owner
        assert owner is not None
        return owner

    def processes_a_file(self) -> float:
        """Deliver a file and wait until gold has processed it. Returns the seconds that this
        took."""
        began, batch = time.monotonic(), self.batch
        self.deliver()
        self.airflow.wait(lambda: self.batch > batch, "what was delivered is not processed")
        return time.monotonic() - began

    def stop_and_start(self) -> None:
        """A person stops the stream and starts it again, with the form."""
        for action in ("stop", "start"):
            self._act(action)

    def _act(self, action: str) -> None:
        run = self.airflow.trigger(CONTROL, action=action)
        self.airflow.wait(
            lambda: self.airflow.states(CONTROL, run).get(("act", -1)) == "success",
            f"{action} is not done",
        )

    def final(self) -> datetime | None:
        """The time up to which the windows of gold are final."""
        return final_up_to(self.layout, load(self.declared.file), "per_minute")

    def pass_by(self, hours: int) -> datetime:
        """Advance the watermark by ``hours``. Returns the end of the last hour that is over."""
        start = HOUR.whole(self.final() or NOON) + timedelta(hours=hours, minutes=30)
        event = reading(f"after-{start:%F-%H}", start, site="North", value=1)
        self.deliver(event, arrived=start)
        self.airflow.wait(
            lambda: (reached := self.final()) and reached > start - timedelta(minutes=1), "no C"
        )
        return HOUR.whole(start)

    def is_supervised(self) -> bool:
        task = self.airflow.task(STREAM, SUPERVISE)
        return task is not None and task["state"] == "deferred"

    def accounts_for_every_event(self) -> None:
        events, declared = self.deliver(), load(self.declared.file)
        self.airflow.wait(
            lambda: by_id(self.layout, declared).rows == events, "not all is processed"
        )
        assert by_id(self.layout, declared).findings == ()
