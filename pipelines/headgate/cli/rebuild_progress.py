"""The progress of rebuilds, for `status` and `upgrade`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.errors import HeadgateError
from headgate.storage.layout import Layout

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline


def rebuild_progress(layout: Layout, declared: Pipeline) -> list[dict[str, Any]]:
    """For each silver and gold table that is being rebuilt: ``table``, the last batch ``n`` that
    the rebuild has processed, and the last batch ``upto`` of bronze."""
    from headgate.savepoints.rebuilds import continued
    from headgate.tables.snapshot import head_table

    bronze = head_table(layout, declared)
    if not bronze.exists:
        return []
    try:
        held = bronze.refresh()
        rebuild = continued(layout, declared, held.generation)
        steps = list(rebuild.steps(layout, declared.name)) if rebuild else []
    except (HeadgateError, FileNotFoundError):
        return []  # damaged, or the rebuild is just ending: the next start reports damage
    # If bronze itself is rebuilt, its batch ids begin again.
    upto = next((step.n for step in steps if step.table == bronze.name), held.n)
    return [
        {"table": step.table, "n": step.n, "upto": upto}
        for step in steps
        if step.table != bronze.name
    ]


def in_words(step: dict[str, Any]) -> str:
    return (
        f"{step['table']} is being rebuilt: batch {step['n']:,} of {step['upto']:,}; readers see "
        "the old rows until it is done"
    )
