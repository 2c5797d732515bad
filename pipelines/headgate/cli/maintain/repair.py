"""``headgate repair``: finds and repairs damage of a pipeline's tables and documents."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.driving import jars_for
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import respond
from headgate.cli.rows import shown
from headgate.commands import rendered
from headgate.declaration.model import Pipeline
from headgate.driver.lease import Lease
from headgate.driver.rereading import what_is_gone
from headgate.errors import HeadgateError
from headgate.history.repair.apply import (
    apply,
    highest_epoch,
    put_documents_aside,
    require_format,
)
from headgate.history.repair.documents import LEASES, damaged_documents
from headgate.history.repair.examine import examine
from headgate.history.repair.plan import CannotRepairError, Plan
from headgate.history.savepoints.clone import require_finished_clone
from headgate.history.savepoints.store import newest_restorable
from headgate.insight.ledger import balance
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.documents import DamagedDocumentError
from headgate.lake.storage.layout import Layout


def repair(
    pipeline: PipelineName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what is damaged and what would be done.")
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Find what is damaged, and rebuild what is built from bronze.

    Reads every page of every file. What is moved away is kept. If bronze is damaged, nothing is
    changed, and the way back is printed. Exit code 5 if damage remains.
    """
    declared, layout = declaration.opened(pipeline, root)
    if not any(layout.storage.folders()):
        raise HeadgateError(
            f"{declared.name} has nothing under {layout.storage.root}",
            remedy="name its folder with --root",
        )
    with suppress(DamagedDocumentError):
        require_finished_clone(layout)
    require_format(layout, declared.name)
    with tempfile.TemporaryDirectory(prefix="headgate-") as scratch:
        if dry_run:
            plan = _examined(layout, declared, Path(scratch))
            remains = bool(plan.refusal) or plan.is_damage
        else:
            plan, remains = _repaired(layout, declared, Path(scratch))
    if plan.refusal is not None and not dry_run:
        if not json:
            _show_findings(plan)
        raise CannotRepairError(plan.refusal, remedy=plan.way_back)
    document = {
        "pipeline": declared.name,
        "damaged": plan.is_damage,
        "findings": [asdict(each) | {"what": rendered(each.what)} for each in plan.findings],
        "actions": [rendered(each) for each in plan.descriptions] if plan.refusal is None else [],
        "refused": plan.refusal and rendered(plan.refusal),
        "way_back": rendered(plan.way_back) or None,
        "repaired": not dry_run and not remains,
    }
    respond(json, document, lambda: _show(plan, declared, layout, dry_run=dry_run))
    if remains:
        raise typer.Exit(exit_codes.LOG_GAP)


def _examined(layout: Layout, declared: Pipeline, scratch: Path) -> Plan:
    """The repair plan. ``scratch`` must not be deleted while the plan is used."""

    def gone(source: str, offsets: Mapping[str, int], topics: Sequence[str]) -> str | None:
        return what_is_gone(layout, declared, source, offsets, topics, jars_for(declared))

    return examine(layout, declared, scratch, gone)


def _repaired(layout: Layout, declared: Pipeline, scratch: Path) -> tuple[Plan, bool]:
    """Repair under a lease on all layers. Returns the plan, and whether damage remains.

    Raises LeaseHeldError while the pipeline runs, CannotRepairError.
    """
    leases = [d for d in damaged_documents(layout) if d.path.startswith(LEASES)]
    put_documents_aside(layout, (lease.path for lease in leases), datetime.now(UTC))
    lease = Lease(layout, LAYERS, declared.name, "repair")
    with lease.held(highest=highest_epoch) as epoch:
        plan = _examined(layout, declared, scratch / "before")
        if plan.refusal is not None or not plan.is_needed:
            return plan.also(leases), plan.refusal is not None
        apply(layout, declared, plan, epoch, datetime.now(UTC))
        after = _examined(layout, declared, scratch / "after")
        return plan.also(leases), after.is_needed or not _balances(layout, declared)


def _balances(layout: Layout, declared: Pipeline) -> bool:
    """Whether the ledger balances. True if there is none, because the next run creates a table
    again."""
    with suppress(HeadgateError):
        return balance(layout, declared).balanced
    return True


def _show(plan: Plan, declared: Pipeline, layout: Layout, *, dry_run: bool) -> None:
    _show_findings(plan)
    if not plan.is_needed:
        print(
            f"{declared.name}: nothing is damaged"
            + ", except files that nothing needs" * bool(plan.findings)
        )
    elif plan.refusal is not None:
        print("would change nothing, because no table has what is lost:")
        print(shown(rendered(f"  {plan.refusal}")))
        print(*map(shown, rendered(plan.way_back).splitlines()), sep="\n")
    else:
        print("would do:" if dry_run else "done:")
        for line in plan.descriptions:
            print(shown(rendered(f"  {line}")))
        if plan.targets and not dry_run and (id_ := _good_savepoint(layout, declared)):
            print("restoring this savepoint now leaves less to rebuild:")
            print(command("savepoint restore", id_))
        print(command("repair" if dry_run else "run"))


def _show_findings(plan: Plan) -> None:
    for finding in plan.findings:
        print(shown(rendered(f"{finding}" + (" (nothing needs it)" if finding.harmless else ""))))


def _good_savepoint(layout: Layout, declared: Pipeline) -> str | None:
    with suppress(HeadgateError):
        found = newest_restorable(layout, declared)
        return found.id if found else None
    return None
