"""The keys of a declaration's `savepoints`."""

from __future__ import annotations

from datetime import timedelta

from headgate.declaration.keys.key import YEAR, Key

SAVEPOINTS = Key(
    "savepoints",
    "section",
    "Savepoints that the running pipeline takes by itself. Without this section it takes none, and "
    "those taken by hand are kept until they are deleted.",
    children=(
        Key(
            "every",
            "duration",
            "The time between two of them.",
            required=True,
            low=timedelta(seconds=10),
            high=YEAR,
        ),
        Key(
            "keep",
            "integer",
            "The newest so many are kept, whatever their age.",
            default="5",
            low=1,
            high=1000,
        ),
        Key(
            "keep_for",
            "duration",
            "And those that are younger than this. The last one that can be restored is kept in "
            "any case.",
            default="7 days",
            low=timedelta(0),
            high=10 * YEAR,
        ),
    ),
)
