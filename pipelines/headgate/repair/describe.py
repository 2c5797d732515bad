"""What a repair does, in words: for each table, what it is given back and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from headgate.declaration.kinds import BRONZE, RECORDS, kind_of
from headgate.repair.plan import Plan
from headgate.repair.recovery_point import Pick, Picks
from headgate.savepoints.savepoint import Savepoint
from headgate.savepoints.store import Unreadable
from headgate.tables.state import State

States = Mapping[str, tuple[int, State]]
Savepoints = Sequence[Savepoint | Unreadable]


def tell(plan: Plan, picks: Picks, states: States, taken: Savepoints) -> Plan:
    """The plan, with what it means."""
    if plan.refusal is not None:
        return replace(plan, told=(plan.refusal, "nothing is changed"))
    return replace(plan, told=tuple(_told(plan, picks, states, taken)))


def _told(plan: Plan, picks: Picks, states: States, taken: Savepoints) -> Iterator[str]:
    for document in plan.documents:
        yield document.told
    yield from _of_logs(plan, picks)
    if plan.filling is not None:
        yield from plan.filling.told
    yield from _of_tables(plan, picks, states, taken)
    for path, version in plan.positions.items():
        yield f"{path}: goes on behind version {version:,} of its table; the rest comes again"
    if plan.generation:
        yield f"resets are numbered from {plan.generation + 1:,} on"
    if plan.is_forgotten:
        yield "which tables the last reset named nobody can read: those that may await it are below"
    if plan.is_open and not plan.resets:
        yield "a reset that was begun is finished"


def _of_logs(plan: Plan, picks: Picks) -> Iterator[str]:
    for log in plan.logs:
        for place in log.aside:
            yield f"{log.path}/{place}: put aside; the log is read without it"
        if log.is_cut:
            yield (
                f"{log.path}: its log goes back to version {log.stands:,}; entries "
                f"{(log.stands or 0) + 1:,} to {log.newest:,} are put aside"
                + ("; the source is read again from there" if kind_of(log.path) == BRONZE else "")
            )
    for path in plan.lost:
        again = (
            "; all is published again, under the same ids" if kind_of(path) not in RECORDS else ""
        )
        anew = (
            " and made anew"
            if path in picks or kind_of(path) not in RECORDS
            else "; nobody declares it"
        )
        yield f"{path}: nothing of its log can be read: it is put aside{anew}{again}"


def _of_tables(plan: Plan, picks: Picks, states: States, taken: Savepoints) -> Iterator[str]:
    top = max((s.n for p, (_, s) in states.items() if kind_of(p) == BRONZE), default=0)
    if plan.reread is not None:
        (path,) = (p for p in picks if kind_of(p) == BRONZE)
        yield f"{path}: {_given_back(path, picks[path], taken)}; the rest is read again"
    for path, target in plan.targets.items():
        if path in picks:
            yield f"{path}: {_given_back(path, picks[path], taken)}; {_again(picks[path], top)}"
        elif target.keep:
            yield f"{path}: stays as it is; if it is declared again, it is built anew"
        else:
            yield f"{path}: goes back as an unfinished reset asks"


def _given_back(path: str, pick: Pick, taken: Savepoints) -> str:
    if pick.moment is None or not pick.n:
        return "emptied"
    version = pick.moment.version
    named = next(
        (
            f" of savepoint {each.id}"
            for each in taken
            if isinstance(each, Savepoint)
            and path in each.tables
            and each.tables[path].version == version
        ),
        "",
    )
    return f"given back batch {pick.n:,} (version {version:,}{named})"


def _again(pick: Pick, top: int) -> str:
    batches = top - pick.n
    return f"{batches:,} batch{'es' * (batches != 1)} from bronze again at the next run"
