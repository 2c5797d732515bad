"""What a repair does, in words, and what it costs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from headgate.declaration.kinds import BRONZE, PUBLICATION, kind_of
from headgate.history.repair.logs import Log
from headgate.history.repair.plan import Plan
from headgate.history.savepoints.resets import Target


def describe(
    plan: Plan, bronze: str, declared: Mapping[str, object], of_events: Collection[str], n: int
) -> Plan:
    """The plan with its descriptions. ``bronze`` is the path of bronze, ``n`` its batch id after
    the repair. ``of_events`` are the publications of gate events."""
    if plan.refusal is not None:
        return replace(plan, descriptions=(plan.refusal, "nothing is changed"))
    return replace(plan, descriptions=tuple(_descriptions(plan, bronze, declared, of_events, n)))


def _descriptions(
    plan: Plan, bronze: str, declared: Mapping[str, object], of_events: Collection[str], n: int
) -> Iterator[str]:
    for document in plan.documents:
        yield document.description
    for log in plan.logs:
        yield from _of_log(log, log.path in declared)
    if plan.filling is not None:
        yield from plan.filling.descriptions
    if plan.reread is not None:
        version = plan.reread.version
        back = f"reset to batch {n:,} (version {version:,})" if version else "emptied"
        yield f"{bronze}: {back}; the rest is read again"
    for path, target in plan.targets.items():
        yield f"{path}: {_of_table(target, path in declared, n)}"
    for path, position in plan.positions.items():
        again = "no event is" if path in of_events else "the rest is"
        yield f"{path}: continues after version {position:,} of its table; {again} sent again"
    if plan.above:
        yield f"resets are numbered from {plan.above + 1:,} on"
    if plan.resets and not (plan.targets or plan.reread or plan.above):
        yield "the tables that the last reset named are unknown, and no table awaits it"
    if plan.is_open and not plan.resets:
        yield "an unfinished reset is finished"


def _of_log(log: Log, is_declared: bool) -> Iterator[str]:
    if log.is_lost:
        again = " and created again" if is_declared else "; no declaration has it"
        if kind_of(log.path) == PUBLICATION:
            again = "; everything is sent again, under the same ids"
        yield f"{log.path}: nothing of its log can be read: it is put aside{again}"
        return
    for place in log.aside:
        yield f"{log.path}/{place}: put aside; the log is read without it"
    if log.is_cut:
        first, stands = (log.stands or 0) + 1, log.stands or 0
        again = "; the source is read again from there" * (kind_of(log.path) == BRONZE)
        yield (
            f"{log.path}: its log goes back to version {stands:,}; entries {first:,} to "
            f"{log.newest:,} are put aside{again}"
        )


def _of_table(target: Target, is_declared: bool, n: int) -> str:
    if target.keep:
        return "stays as it is; if it is declared again, it is rebuilt"
    if target.version is not None or not is_declared:
        return "goes back as an unfinished reset asks"
    return f"rebuilt: {n:,} batch{'es' * (n != 1)} of bronze again at the next run"
