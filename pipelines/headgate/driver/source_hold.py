"""Why a source is held: a person has to act before the driver goes on with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headgate.commands import commands_in, rendered
from headgate.errors import HeadgateError
from headgate.lake.control.driver_reports import SourceFailure


@dataclass(frozen=True)
class SourceHold:
    """The source cannot be read, or its silver and gold tables cannot continue. The driver goes on
    with the other sources. It is held since ``since``."""

    error: HeadgateError
    since: datetime

    @property
    def failure(self) -> SourceFailure:
        """It is rendered here: readers of the status document do not know the place."""
        reason, remedy = rendered(self.error.message), rendered(self.error.remedy)
        return SourceFailure(reason, remedy, self.since, commands_in(self.error.remedy))
