"""All interleavings of a scenario, each state once, and from each one: stop all, start afresh."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.property.protocol import operating, sourcing, staging, starting
from tests.property.protocol.delta import World
from tests.property.protocol.invariants import (
    Violation,
    completion_faults,
    driver_faults,
    faults,
)
from tests.property.protocol.scenario import Driver, Scenario, State, Step

STEPS: dict[str, Step] = {
    "lease": starting.lease,
    "fence": starting.fence,
    "fence commit": starting.fence_commit,
    "start": starting.start,
    "plan": sourcing.plan,
    "list": sourcing.list_files,
    "record": sourcing.record,
    "refresh": staging.refresh,
    "bound": staging.bound,
    "stage": staging.stage,
    "commit": staging.commit,
    "intend": operating.intend,
    "intend commit": operating.intend_commit,
    "operate": operating.operate,
    "operation commit": operating.operation_commit,
    "compact": operating.compact,
    "compact commit": operating.compact_commit,
}
# Far more than any driver needs that is left alone with a few files.
MAX_STEPS = 400
ALL_KINDS = frozenset({"damage", "zombie", "stuck"})


@dataclass
class Findings:
    """``violation`` is None or says what broke, ``trace`` how: one line a step."""

    states: int
    worlds: int
    violation: Violation | None = None
    trace: list[str] = field(default_factory=list)


def explore(
    scenario: Scenario, kinds: frozenset[str] = ALL_KINDS, max_states: int = 400_000
) -> Findings:
    """Breadth first, so that a trace is as short as can be. Stops at the first violation of one
    of ``kinds``."""
    first = scenario.start()
    came_from: dict[State, tuple[State, str] | None] = {first: None}
    judged: dict[World, list[Violation]] = {}
    queue = deque([first])
    while queue:
        state = queue.popleft()
        successors = list(steps(scenario, state))
        found = violations(scenario, state, judged, at_rest=not successors)
        for violation in found:
            if violation.kind in kinds:
                steps_taken = trace(state, came_from)
                return Findings(len(came_from), len(judged), violation, steps_taken)
        for name, successor in successors:
            if successor not in came_from:
                came_from[successor] = (state, name)
                queue.append(successor)
        if len(came_from) > max_states:
            raise AssertionError(f"more than {max_states} states: choose a smaller scenario")
    return Findings(len(came_from), len(judged))


def steps(scenario: Scenario, state: State) -> Iterator[tuple[str, State]]:
    """Every step that some driver may take now, with words for it."""
    for number, driver in enumerate(state.drivers):
        for name, world, after in driver_steps(scenario, state.world, driver):
            drivers = (*state.drivers[:number], after, *state.drivers[number + 1 :])
            yield f"{number}: {name}", State(world, drivers)
        if driver.at == "lease":
            return  # later drivers start later: who is called the first does not matter


def driver_steps(
    scenario: Scenario, world: World, driver: Driver
) -> Iterator[tuple[str, World, Driver]]:
    if not driver.ended:
        name = " ".join((driver.role, driver.at, *driver.tables[:1]))
        for after, moved in STEPS[driver.at](scenario, world, driver):
            yield f"{name} ({moved.at})" if moved.ended else name, after, moved


def violations(
    scenario: Scenario, state: State, judged: dict[World, list[Violation]], *, at_rest: bool
) -> list[Violation]:
    """All that ``state`` violates; what its world shows is worked out once."""
    world = state.world
    if world not in judged:
        judged[world] = [*faults(scenario, world), *finish(scenario, world)]
    found = [*judged[world], *driver_faults(state)]
    return [*found, *completion_faults(scenario, state)] if at_rest else found


def finish(scenario: Scenario, world: World) -> Iterator[Violation]:
    """All drivers die here and new ones run undisturbed: what goes wrong then, if anything."""
    quiet = replace(scenario, closings=0, compactions=0)
    count = len(scenario.roles)
    definition = scenario.definition_of(count - 1)
    names = range(len(scenario.finish))
    drivers = [Driver(scenario.finish[i], count + i, definition) for i in names]
    budget, moved = MAX_STEPS, True
    while moved and budget > 0:
        moved = False
        for i in names:
            while budget > 0 and (choice := next(driver_steps(quiet, world, drivers[i]), None)):
                _, world, drivers[i] = choice
                moved, budget = True, budget - 1
    if moved:
        yield Violation("stuck", "after a restart: does not come to rest")
    end = State(world, tuple(drivers))
    for kind, text in (*faults(quiet, world), *driver_faults(end), *completion_faults(quiet, end)):
        yield Violation(kind, f"after a restart: {text}")


def trace(state: State, came_from: dict[State, tuple[State, str] | None]) -> list[str]:
    lines: list[str] = []
    before = came_from[state]
    while before is not None:
        lines.insert(0, before[1])
        before = came_from[before[0]]
    return lines
