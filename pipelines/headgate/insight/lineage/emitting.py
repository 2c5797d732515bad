"""Sends lineage beside other work, which never waits for it nor fails because of it. The standard
variables of OpenLineage say whether it is sent, and where."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.commands import install_extra
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.insight.lineage.hours import Range, due, final_hour, record_sent, sent_up_to
from headgate.lake.storage.layout import Layout

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import RunEvent

    from headgate.history.backfill.report import BackfillReport
    from headgate.insight.lineage.events import About


NAMESPACE = "OPENLINEAGE_NAMESPACE"
"""The variable with the namespace of jobs; ``headgate`` if it is not set."""
_REMEDY = "correct the variables, or set OPENLINEAGE_DISABLED=true"
_SAY_WHERE = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT")


class LineageError(HeadgateError, code=exit_codes.MACHINE):
    """Lineage is configured, and cannot be sent."""


def is_configured(environment: Mapping[str, str]) -> bool:
    if environment.get("OPENLINEAGE_DISABLED", "").lower() in ("true", "1"):
        return False
    return any(name.startswith(_SAY_WHERE) and value for name, value in environment.items())


def namespace(environment: Mapping[str, str]) -> str:
    return environment.get(NAMESPACE) or "headgate"


def client() -> OpenLineageClient:
    """The client that the variables configure. Raises LineageError, which quotes no value of a
    variable, because it may have a password."""
    try:
        from openlineage.client import OpenLineageClient
    except ImportError as error:
        raise LineageError(
            "lineage is configured (OPENLINEAGE_…), and its client is not installed",
            remedy=f"install it: {install_extra('lineage')}",
        ) from error
    require_json(os.environ)
    try:
        return OpenLineageClient()
    except Exception as error:  # a transport may raise any error
        kind = type(error).__name__
        raise LineageError(
            f"lineage cannot be sent: the client rejects the OPENLINEAGE_… variables ({kind})",
            remedy=_REMEDY,
        ) from error


def require_json(environment: Mapping[str, str]) -> None:
    """Raises LineageError if a setting looks like JSON and is not valid JSON: the client would
    write it into a log."""
    for name, value in environment.items():
        if name.startswith("OPENLINEAGE__") and any(c in value for c in "{}[]"):
            try:
                json.loads(value)
            except json.JSONDecodeError as error:
                wrong = f"{error.msg} at character {error.pos + 1}"
                raise LineageError(f"{name} is not JSON: {wrong}", remedy=_REMEDY) from None


LOOK_EVERY = 5.0  # seconds
TRY_AGAIN = 60.0  # seconds after a receiver did not answer
ENDS_WITHIN = 10.0
"""Seconds that a run waits at its end. What is not sent by then is sent by the next run."""

Say = Callable[[str], None]


@contextmanager
def lineage_sent(declared: Pipeline, layout: Layout, say: Say) -> Iterator[None]:
    """Send each hour that becomes final until the block ends, if a receiver is configured. ``say``
    is called if sending fails."""
    if not is_configured(os.environ):
        yield
        return
    sender = _Sender(declared, layout, say)
    ended = threading.Event()
    thread = threading.Thread(target=sender.keep, args=(ended,), name="lineage", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(ENDS_WITHIN)


def send_backfill(declared: Pipeline, layout: Layout, report: BackfillReport, say: Say) -> None:
    """Send a backfill, if a receiver is configured. Waits for at most ENDS_WITHIN."""
    if is_configured(os.environ):
        sender = _Sender(declared, layout, say)
        thread = threading.Thread(target=sender.send_report, args=(report,), daemon=True)
        thread.start()
        thread.join(ENDS_WITHIN)
        if thread.is_alive():
            say("lineage: the receiver does not answer; this backfill is not sent")


class _Sender:
    """Runs on a thread of its own: if the receiver is not reachable, each event takes seconds."""

    def __init__(self, declared: Pipeline, layout: Layout, say: Say) -> None:
        self._declared, self._layout, self._say = declared, layout, say
        self._client: OpenLineageClient | None = None
        self._said = ""

    def keep(self, ended: threading.Event) -> None:
        is_well = True
        while not ended.is_set():
            is_well = self._guarded(self.send_due)
            ended.wait(LOOK_EVERY if is_well else TRY_AGAIN)
        if is_well:
            self._guarded(self.send_due)  # what the last batches made final

    def send_due(self) -> None:
        """Send the hours that are due. Raises HeadgateError if a table is damaged, and what the
        transport raises."""
        for source in self._declared.sources:
            if (final := final_hour(self._layout, self._declared, source)) is None:
                continue
            for hour in due(sent_up_to(self._layout).get(source), final):
                self._send_hour(source, hour)

    def _send_hour(self, source: str, hour: Range) -> None:
        self._emit(lambda about: about.of_hour(source, hour))
        record_sent(self._layout, source, hour[1])

    def send_report(self, report: BackfillReport) -> None:
        self._guarded(lambda: self._emit(lambda about: about.of_backfill(report)))

    def _emit(self, events: Callable[[About], Iterable[RunEvent]]) -> None:
        # Create the client first: without the package, its error says what to install.
        if self._client is None:
            self._client = client()
        from headgate.insight.lineage.events import About

        about = About(self._declared, self._layout, namespace(os.environ), datetime.now(UTC))
        for event in events(about):
            self._client.emit(event)

    def _guarded(self, act: Callable[[], None]) -> bool:
        """Whether ``act`` succeeded. An error is reported once, without the address, which may have
        a password."""
        try:
            act()
        except LineageError as error:
            self._tell(f"{error.message}; {error.remedy}")
        except HeadgateError as error:
            self._tell(f"lineage is not sent: {error.message}")
        except Exception as error:
            self._tell(f"lineage is not sent ({type(error).__name__}); it is tried again later")
        else:
            self._said = ""
            return True
        return False

    def _tell(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._say(text)
