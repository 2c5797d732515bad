"""The keys of a declaration's `savepoints`."""

from __future__ import annotations

from datetime import timedelta

from headgate.declaration.keys.key import YEAR, Key
from headgate.declaration.quantities import format_duration
from headgate.declaration.settings import SavepointSchedule

SAVEPOINTS = Key(
    "savepoints",
    "section",
    "Savepoints that the running pipeline takes automatically. Without this section it takes none, "
    "and savepoints taken by hand are kept until you delete them.",
    children=(
        Key(
            "every",
            "duration",
            "The time between two savepoints.",
            required=True,
            low=timedelta(seconds=10),
            high=YEAR,
        ),
        Key(
            "keep",
            "integer",
            "This many of the newest savepoints are kept, whatever their age.",
            default=str(SavepointSchedule.keep),
            low=1,
            high=1000,
        ),
        Key(
            "keep_for",
            "duration",
            "Savepoints younger than this are kept too. The last one that can be restored is "
            "always kept.",
            default=format_duration(SavepointSchedule.keep_for),
            low=timedelta(0),
            high=10 * YEAR,
        ),
    ),
)
