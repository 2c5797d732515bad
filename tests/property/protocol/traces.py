"""Traces of the model's search, as schedules for the engine. Each trace breaks a protocol without
one of its rules. The engine, which keeps the rule, runs the same steps."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.property.protocol.lockstep import AT_ONCE, READY, Move
from tests.property.protocol.scenario import DRIVERS, Event, Scenario
from tests.property.protocol.search import Findings, explore
from tests.property.protocol.steps import STEPS
from tests.property.protocol.tables import ONE
from tests.property.protocol.test_mutants import MUTANTS, Mutant, label

STORED = Path(__file__).parent / "traces.json"
BEGUN = {"list": "list", "decide": "close", "survey": "go"}
PREPARES = ("fence", "list", "stage", "operate")
"""Steps of the model after which a commit is prepared."""


@dataclass(frozen=True)
class Trace:
    """``scripts`` are those of ``roles``. The first ``alone`` processes play the history, and
    ``crew`` does the remaining work. ``events`` are windows and outcomes."""

    name: str
    events: tuple[tuple[int, str], ...]
    roles: tuple[str, ...]
    scripts: tuple[str, ...]
    moves: tuple[tuple[int, Move], ...]
    crew: tuple[str, ...]
    alone: int = 1

    def __str__(self) -> str:
        return self.name

    @property
    def scenario(self) -> Scenario:
        events = (Event(window, (outcome,)) for window, outcome in self.events)
        return Scenario(tuple(events), roles=self.roles)


def trace_of(mutant: Mutant) -> Trace | None:
    """The trace that breaks a mutant. None if the engine cannot follow such a trace: it decides
    itself when to compact, a changed declaration leads to a rebuild, and it has one source."""
    scenario = mutant.scenario
    if scenario.compactions or scenario.definitions or scenario.sources != ONE:
        return None
    without = replace(scenario, without=frozenset(mutant.rules))
    found = explore(without, frozenset({mutant.kind}))
    steps = [_parsed(line) for line in found.trace]
    scripts = [_words(steps, number, role) for number, role in enumerate(scenario.roles)]
    past, history = _history(scenario)
    moves = [(number + len(past), move) for number, at, _ in steps if (move := _move(at))]
    return Trace(
        label(mutant),
        tuple((event.window, event.outcome(0)) for event in scenario.events),
        (*past, *scenario.roles),
        tuple(" ".join(words) for words in (*history, *scripts)),
        tuple(moves),
        _crew(found),
        len(past),
    )


def _history(scenario: Scenario) -> tuple[list[str], list[list[str]]]:
    """The processes that play a scenario's history, one after the other, and their scripts."""
    roles, scripts = [scenario.before], [["list"]]
    for word in scenario.history:
        what, _, number = word.partition(" ")
        if what == "reread":
            roles += [what, scenario.before]
            scripts += [[number], []]
        else:
            scripts[-1].append(word)
    return roles, scripts


def stored() -> tuple[Trace, ...]:
    return tuple(
        Trace(**{key: _frozen(value) for key, value in said.items()})
        for said in json.loads(STORED.read_text())
    )


def store() -> None:
    """Search every mutant and store the trace that breaks it."""
    found = [asdict(trace) for mutant in MUTANTS if (trace := trace_of(mutant))]
    STORED.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _parsed(line: str) -> tuple[int, str, str]:
    """The number of the process, its step, and its table."""
    number, _, said = line.partition(": ")
    _, _, said = said.partition(" (")[0].partition(" ")
    at = max((step for step in STEPS if said.startswith(step)), key=len)
    return int(number), at, said.removeprefix(at).strip()


def _words(steps: list[tuple[int, str, str]], number: int, role: str) -> list[str]:
    """What a driver decided to do, each time that it was at rest."""
    own = [step[1:] for step in steps if step[0] == number]
    words = []
    for (at, _), (following, table) in pairwise(own):
        if at == "plan" and following == "refresh":
            words.append("batch" if table == "bronze" else "go")
        elif at == "plan" and following in BEGUN:
            words.append(BEGUN[following])
    return words if role in DRIVERS else []


def _move(at: str) -> Move | None:
    if at == "lease":
        return "lease"
    if at in READY or at in AT_ONCE:
        return "commit"
    return "prepare" if at in PREPARES else None


def _crew(found: Findings) -> tuple[str, ...]:
    """The crew of the restart after which the violation appeared; without a restart, one fused
    driver."""
    text = found.violation.text if found.violation else ""
    _, _, said = text.partition("after a restart (")
    crew = said.partition(")")[0].split(", ") if said else ["fused"]
    return tuple(crew)
