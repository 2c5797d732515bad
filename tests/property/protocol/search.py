"""All interleavings of a scenario, each state once. From each state, all processes are also stopped
and new ones started."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from tests.property.protocol.delta import World
from tests.property.protocol.essence import essence
from tests.property.protocol.invariants import (
    Violation,
    completion_faults,
    content_faults,
    driver_faults,
    faults,
    force_faults,
    has_failed,
    log_faults,
    zombie_faults,
)
from tests.property.protocol.saving import copied
from tests.property.protocol.scenario import Driver, Scenario, State
from tests.property.protocol.steps import beginning, driver_steps

# Far more steps than an undisturbed driver needs for a few files.
MAX_STEPS = 600
AFTER = 100
"""The first name of the processes that finish: no process of a scenario has such a name."""
ALL_KINDS = frozenset({"damage", "zombie", "stuck"})

Numbers = tuple[int, ...]
"""A state as a search holds it: the number of its world, then those of its drivers."""


@dataclass
class Findings:
    """``violation`` is None or what broke; ``trace`` has the steps that lead to it, one in each
    line."""

    states: int
    worlds: int
    violation: Violation | None = None
    trace: list[str] = field(default_factory=list)


class Space:
    """Worlds and drivers by number: most states differ from others in one of them only. The steps
    of a driver in a world, and the violations of a world, are computed once."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.worlds: dict[World, int] = {}
        self.drivers: dict[Driver, int] = {}
        self.failed: set[int] = set()
        self._world: list[World] = []
        self._driver: list[Driver] = []
        self.moves = cache(self._moves)
        self.violations = cache(self._violations)
        self.violations_of_essence = cache(self._violations_of_essence)
        self.driver_faults = cache(self._driver_faults)

    def numbers(self, state: State) -> Numbers:
        return (self._number_world(state.world), *map(self._number_driver, state.drivers))

    def state(self, numbers: Numbers) -> State:
        drivers = tuple(self._driver[number] for number in numbers[1:])
        return State(self._world[numbers[0]], drivers)

    def waits_for_lease(self, driver: int) -> bool:
        return self._driver[driver].at == "lease"

    def waits_for(self, driver: int, before: int) -> bool:
        """Whether a process may not start yet: the one before it has not ended."""
        earlier = self._driver[before]
        in_turn = self.scenario.in_turn and earlier.role != "savepoint"
        return in_turn and self.waits_for_lease(driver) and not earlier.ended

    def _number_world(self, world: World) -> int:
        if (number := self.worlds.setdefault(world, len(self._world))) == len(self._world):
            self._world.append(world)
        return number

    def _number_driver(self, driver: Driver) -> int:
        if (number := self.drivers.setdefault(driver, len(self._driver))) == len(self._driver):
            self._driver.append(driver)
            if has_failed(driver):
                self.failed.add(number)
        return number

    def _moves(self, world: int, driver: int) -> tuple[tuple[str, int, int], ...]:
        found = driver_steps(self.scenario, self._world[world], self._driver[driver])
        return tuple(
            (name, self._number_world(after), self._number_driver(moved))
            for name, after, moved in found
        )

    def _violations(self, world: int) -> tuple[Violation, ...]:
        there = self._world[world]
        return (*log_faults(there), *self.violations_of_essence(essence(there)))

    def _violations_of_essence(self, world: World) -> tuple[Violation, ...]:
        there = self.scenario, world
        return (*force_faults(world), *content_faults(*there), *finish(*there))

    def _driver_faults(self, drivers: Numbers) -> tuple[Violation, ...]:
        return tuple(driver_faults(tuple(self._driver[number] for number in drivers)))


def explore(
    scenario: Scenario, kinds: frozenset[str] = ALL_KINDS, max_states: int = 1_500_000
) -> Findings:
    """Breadth first, so that a trace is as short as can be. Stops at the first violation of one
    of ``kinds``."""
    space = Space(scenario)
    first = space.numbers(beginning(scenario))
    came_from: dict[Numbers, tuple[Numbers, str] | None] = {first: None}
    queue = deque([first])
    while queue:
        state = queue.popleft()
        successors = list(steps(space, state))
        for violation in violations(space, state, at_rest=not successors):
            if violation.kind in kinds:
                taken = trace(state, came_from)
                return Findings(len(came_from), len(space.worlds), violation, taken)
        for name, successor in successors:
            if successor not in came_from:
                came_from[successor] = (state, name)
                queue.append(successor)
        if len(came_from) > max_states:
            raise AssertionError(f"more than {max_states} states: choose a smaller scenario")
    return Findings(len(came_from), len(space.worlds))


def steps(space: Space, state: Numbers) -> Iterator[tuple[str, Numbers]]:
    """Every step that some driver may take now, each with a description."""
    for place in range(1, len(state)):
        if place > 1 and space.waits_for(state[place], state[place - 1]):
            return
        for name, world, moved in space.moves(state[0], state[place]):
            yield f"{place - 1}: {name}", (world, *state[1:place], moved, *state[place + 1 :])
        if space.waits_for_lease(state[place]):
            return  # later drivers start later, so that only one order of their names is searched


def violations(space: Space, state: Numbers, *, at_rest: bool) -> list[Violation]:
    """All that ``state`` violates."""
    found = [*space.violations(state[0])]
    if not space.failed.isdisjoint(state[1:]):
        found += space.driver_faults(state[1:])
    if space.scenario.declared:
        found += zombie_faults(space.scenario, *space.state(state))
    return [*found, *completion_faults(space.scenario, space.state(state))] if at_rest else found


def finish(scenario: Scenario, world: World) -> Iterator[Violation]:
    """All drivers die here and new ones run undisturbed: the violations after that."""
    quiet = replace(scenario, drains=0, compactions=0)
    for crew in scenario.finish:
        yield from finish_with(quiet, world, crew)
    for savepoint in world.savepoints if scenario.copies else ():
        for kind, text in finish_with(quiet, copied(world, savepoint), ("fused",)):
            yield Violation(kind, f"of a copy, {text}")


def finish_with(scenario: Scenario, world: World, crew: tuple[str, ...]) -> Iterator[Violation]:
    """Each process of a crew goes as far as it can, then the next, until none can continue."""
    drivers = [scenario.process(role, AFTER + i) for i, role in enumerate(crew)]
    budget, moved = MAX_STEPS, True
    while moved and budget > 0:
        moved = False
        for i in range(len(drivers)):
            while budget > 0 and (choice := next(driver_steps(scenario, world, drivers[i]), None)):
                _, world, drivers[i] = choice
                moved, budget = True, budget - 1
    restarted = f"after a restart ({', '.join(crew)})"
    if moved:
        yield Violation("stuck", f"{restarted}: does not come to rest")
    end = State(world, tuple(drivers))
    found = faults(scenario, world), driver_faults(end.drivers), completion_faults(scenario, end)
    for kind, text in (violation for each in found for violation in each):
        yield Violation(kind, f"{restarted}: {text}")


def trace(state: Numbers, came_from: dict[Numbers, tuple[Numbers, str] | None]) -> list[str]:
    lines: list[str] = []
    before = came_from[state]
    while before is not None:
        lines.insert(0, before[1])
        before = came_from[before[0]]
    return lines
