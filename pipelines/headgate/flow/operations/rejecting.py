"""Rejects an operation that a gate holds: the gold table carries it out without a change.

Bronze's commit marks the document of the operation, and every later commit repeats it. So a rebuild
decides the same. The request comes from the job that writes the table, and only while that job no
longer tries to carry the operation out: otherwise the table could change after bronze's commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from headgate.declaration.contracts.operation import REJECTED, is_rejected
from headgate.declaration.kinds import GOLD
from headgate.failpoints import failpoint
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import commit_time
from headgate.lake.tables.table import Table

NAME = "reject"
"""The name of the request. Its document names the ``table`` and the ``operation``, at a
``generation`` of the table, and says ``by`` whom, why and when (``reason``, ``at``)."""


def tell_rejected(bronze: Table, gold: Table, document: Mapping[str, Any], now: datetime) -> None:
    """Mark an operation as rejected for a gold table, in one commit of bronze; no commit if the
    table has carried it out, or was reset, since it was rejected. Raises CommitRefusedError,
    FencedError."""
    number, held = document["operation"], gold.refresh()
    if held.operation >= number or held.generation != document["generation"]:
        return
    state = bronze.refresh().held("extend", bronze.epoch)
    payload = BronzePayload.of(state)
    said = {name: document[name] for name in ("by", "reason", "at")}

    def told(found: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**found, REJECTED: {**found.get(REJECTED, {}), document["table"]: said}}

    marked = tuple(
        replace(each, document=told(each.document))
        if each.number == number and not is_rejected(each.document, GOLD.path(document["table"]))
        else each
        for each in payload.operations
    )
    if marked != tuple(payload.operations):
        payload = replace(payload, operations=marked)
        bronze.commit(replace(state, payload=payload, at=commit_time(now)))
        failpoint("operation.rejected")
