"""The keys of publications."""

from __future__ import annotations

from dataclasses import replace

from headgate.declaration.contracts.sink import SINKS
from headgate.declaration.keys.key import Key

WHEN = ("final", "update")
_ROWS = (
    Key(
        "from",
        "text",
        "The table: `gold.TABLE`, `late.TABLE` (TABLE is a gold table) or `quarantine.SOURCE`; or "
        "`gate.TABLE`: each time that the rules of a gold table hold a version, that a person "
        "releases it, or that it passes after all.",
        required=True,
    ),
    Key(
        "when",
        "choice",
        "For gold only: send a row when its window is `final`, or on each `update`, including "
        "open windows.",
        default=WHEN[0],
        choices=WHEN,
    ),
)


def publication_key() -> Key:
    """The key of a publication. It contains a key for each sink that is installed, of which one is
    given."""
    names = SINKS.names()
    is_only = len(names) == 1
    sinks = (replace(SINKS[name].key, required=is_only) for name in names)
    return Key(
        "NAME",
        "section",
        "The rows of one table, sent to a sink.",
        one_of=() if is_only else names,
        children=(*_ROWS, *sinks),
    )
