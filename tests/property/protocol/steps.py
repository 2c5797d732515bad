"""Every step that a process can take, and the history before a search begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.property.protocol import operating, resetting, saving, sourcing, staging, starting
from tests.property.protocol.delta import World
from tests.property.protocol.scenario import Driver, Scenario, State, Step

STEPS: dict[str, Step] = {
    "lease": starting.lease,
    "fence": starting.fence,
    "fence commit": starting.fence_commit,
    "reset": resetting.reset,
    "reset commit": resetting.reset_commit,
    "start": starting.start,
    "plan": sourcing.plan,
    "survey": sourcing.survey,
    "survey decisions": sourcing.survey_decisions,
    "list": sourcing.list_files,
    "record": sourcing.record,
    "refresh": staging.refresh,
    "bound": staging.bound,
    "stage": staging.stage,
    "commit": staging.commit,
    "decide": operating.decide,
    "decide position": operating.decide_position,
    "decide commit": operating.decide_commit,
    "operate": operating.operate,
    "operation commit": operating.operation_commit,
    "compact": operating.compact,
    "compact commit": operating.compact_commit,
    "ask": resetting.ask,
    "ask commit": resetting.ask_commit,
    "prove": resetting.prove,
    "rebuild": resetting.rebuild,
    "rebuild commit": resetting.rebuild_commit,
    "publish": resetting.publish,
    "publish commit": resetting.publish_commit,
    "cut": saving.cut,
    "confirm": saving.confirm,
}
BEFORE = -1
"""The name of the process that carries out a scenario's history."""


def driver_steps(
    scenario: Scenario, world: World, driver: Driver
) -> Iterator[tuple[str, World, Driver]]:
    if not driver.ended:
        name = " ".join((driver.role, driver.at, *driver.tables[:1]))
        for after, moved in STEPS[driver.at](scenario, world, driver):
            yield f"{name} ({moved.at})" if moved.ended else name, after, moved


def beginning(scenario: Scenario) -> State:
    """The first state of a search: one undisturbed driver has carried out the history."""
    world = scenario.world()
    if scenario.history:
        busy = replace(scenario, drains=len(scenario.history), failing=(), damaged=())
        world, driver = to_rest(busy, world, scenario.process(scenario.before, BEFORE))
        for word in scenario.history:
            world, driver = played(busy, word, world, driver)
    return State(world, scenario.processes())


def played(scenario: Scenario, word: str, world: World, driver: Driver) -> tuple[World, Driver]:
    """Carry out one word of a history."""
    if word == "savepoint":
        world, _ = to_rest(scenario, world, scenario.process("savepoint", driver.name))
        return world, driver
    what, _, which = word.partition(" ")
    if what == "reread":
        return gone_back(scenario, world, int(which), driver.name)
    if what == "declare":
        return to_rest(scenario, world, scenario.process(scenario.before, BEFORE - int(which)))
    events = {"batch": 1, "double": 2}.get(what, 0)
    options = driver_steps(scenario, world, driver)
    world, driver = next((w, m) for _, w, m in options if chosen(m, events, which))
    return to_rest(scenario, world, driver)


def to_rest(scenario: Scenario, world: World, driver: Driver) -> tuple[World, Driver]:
    """Run one process until it has a choice or has ended."""
    while not driver.ended and driver.at != "plan":
        _, world, driver = next(driver_steps(scenario, world, driver))
    return world, driver


def gone_back(scenario: Scenario, world: World, savepoint: int, name: int) -> tuple[World, Driver]:
    """A reread of a savepoint by its number, oldest first; then the next driver is at rest."""
    leases = list(driver_steps(scenario, world, scenario.process("reread", name)))
    _, world, driver = leases[-1 - savepoint]
    world, _ = to_rest(scenario, world, driver)
    return to_rest(scenario, world, scenario.process(scenario.before, name))


def chosen(after: Driver, events: int, source: str) -> bool:
    """Whether a driver has chosen a batch of so many events of a source; of none: an operation."""
    if not events:
        return after.at == "decide"
    is_batch = after.at == "refresh" and after.source == source
    return is_batch and after.batch[1] == after.batch[0] + events
