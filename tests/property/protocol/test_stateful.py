"""Bigger scenarios, walked at random: more files, drivers, roles, closings and compactions."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.property.protocol.invariants import driver_faults, faults
from tests.property.protocol.scenario import Driver, Event, Scenario, State
from tests.property.protocol.search import driver_steps, finish

ROLES = ("fused", "bronze", "silver", "gold")
LAYERS = ROLES[1:]
EVENTS = st.builds(
    Event,
    window=st.integers(0, 2),
    outcomes=st.sampled_from(["good", "good", "good", "bad", "late"]).map(lambda one: (one,)),
)


class Drivers(RuleBasedStateMachine):
    """Start any driver at any time, let it take some steps, forget it for a while or for good."""

    @initialize(events=st.lists(EVENTS, min_size=1, max_size=8), first=st.sampled_from(ROLES))
    def begin(self, events: list[Event], first: str) -> None:
        self.scenario = Scenario(
            tuple(events), roles=(first,), recorded=False, closings=2, compactions=2
        )
        self.state = self.scenario.start()

    @precondition(lambda self: len(self.state.drivers) < 8)
    @rule(role=st.sampled_from(ROLES))
    def start(self, role: str) -> None:
        driver = Driver(role, len(self.state.drivers))
        self.state = State(self.state.world, (*self.state.drivers, driver))

    @rule(number=st.integers(0, 7), choices=st.lists(st.integers(0, 5), min_size=1, max_size=40))
    def run(self, number: int, choices: list[int]) -> None:
        drivers = list(self.state.drivers)
        number %= len(drivers)
        world = self.state.world
        for choice in choices:
            options = list(driver_steps(self.scenario, world, drivers[number]))
            if not options:
                break
            _, world, drivers[number] = options[choice % len(options)]
        self.state = State(world, tuple(drivers))

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert not [*faults(self.scenario, self.state.world), *driver_faults(self.state)]

    def teardown(self) -> None:
        if hasattr(self, "state"):
            for roles in (("fused",), LAYERS):
                names = tuple(driver.role for driver in self.state.drivers)
                scenario = Scenario(self.scenario.events, names, finish=roles, recorded=False)
                assert not list(finish(scenario, self.state.world))


TestDrivers = Drivers.TestCase
TestDrivers.settings = settings(
    max_examples=250,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
