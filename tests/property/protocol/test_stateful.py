"""Bigger scenarios, walked at random: more files, processes, drains; compactions or resets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.property.protocol.invariants import driver_faults, faults
from tests.property.protocol.scenario import DRIVERS, RESETTING, Event, Scenario, State
from tests.property.protocol.search import finish
from tests.property.protocol.steps import beginning, driver_steps
from tests.property.protocol.test_search import FUSED, GOLD_FIRST, LAYERS
from tests.property.protocol.test_sources import AB
from tests.support.rounds import IN_FULL

pytestmark = pytest.mark.long

OTHERS = (*RESETTING, "savepoint")
HISTORIES = (
    ("savepoint", "batch", "savepoint", "batch", "close"),
    ("batch", "close", "savepoint", "batch", "batch", "savepoint"),
    ("batch", "savepoint", "close", "savepoint", "reread 0", "double", "close", "savepoint"),
)
HISTORIES_OF_TWO = (
    ("savepoint", "batch a", "batch b", "savepoint", "batch a", "close"),
    ("declare 1", "batch a", "savepoint", "close", "declare 0", "batch b", "savepoint"),
    ("batch a", "close", "savepoint", "batch b", "close", "savepoint", "reread 0", "batch a"),
)
DECLARED = st.lists(st.sampled_from([AB, AB, ("a",), ("b",)]), min_size=1, max_size=12)
STEPS = st.integers(1, 60)
CHOICES = st.lists(st.integers(0, 5), min_size=1, max_size=4)
EVENTS = st.builds(
    Event,
    window=st.integers(0, 2),
    source=st.just(""),
    outcomes=st.sampled_from(["good", "good", "good", "bad", "late"]).map(lambda one: (one,)),
)


class Processes(RuleBasedStateMachine):
    """Start any process at any time, run it for some steps, and leave it for a while or for
    good."""

    @initialize(
        events=st.lists(EVENTS, min_size=3, max_size=8),
        first=st.sampled_from(DRIVERS),
        history=st.sampled_from(((), *HISTORIES)),
    )
    def begin(self, events: list[Event], first: str, history: tuple[str, ...]) -> None:
        self.begin_with(events, first, history)

    def begin_with(
        self, events: list[Event], first: str, history: tuple[str, ...], **more: Any
    ) -> None:
        self.goes_back = bool(history)
        # The model does not have the files that compaction must keep for savepoints.
        self.scenario = Scenario(
            tuple(events),
            roles=(first, *RESETTING) if history else (first,),
            finish=(FUSED, LAYERS, GOLD_FIRST, ("restore", "fused"))
            if history
            else (FUSED, LAYERS),
            history=history,
            recorded=bool(history),
            drains=3,
            publications=2 if history else 0,
            compactions=0 if history else 2,
            copies=True,
            **more,
        )
        world = beginning(self.scenario).world
        self.state = State(world, (self.scenario.process(first, 0),))

    @precondition(lambda self: len(self.state.drivers) < 8)
    @rule(role=st.sampled_from(DRIVERS), steps=STEPS, choices=CHOICES)
    def start(self, role: str, steps: int, choices: list[int]) -> None:
        self.begin_process(role)
        self.run(-1, steps, choices)

    @precondition(lambda self: self.goes_back and len(self.state.drivers) < 12)
    @rule(role=st.sampled_from(OTHERS), steps=STEPS, choices=CHOICES)
    def go_back(self, role: str, steps: int, choices: list[int]) -> None:
        self.begin_process(role)
        self.run(-1, steps, choices)

    def begin_process(self, role: str) -> None:
        process = self.scenario.process(role, len(self.state.drivers))
        self.state = State(self.state.world, (*self.state.drivers, process))

    @rule(number=st.integers(0, 11), steps=STEPS, choices=CHOICES)
    def run(self, number: int, steps: int, choices: list[int]) -> None:
        drivers = list(self.state.drivers)
        number %= len(drivers)
        world = self.state.world
        for step in range(steps):
            options = list(driver_steps(self.scenario, world, drivers[number]))
            if not options:
                break
            choice = choices[step % len(choices)]
            _, world, drivers[number] = options[choice % len(options)]
        self.state = State(world, tuple(drivers))

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert not [*faults(self.scenario, self.state.world), *driver_faults(self.state.drivers)]

    def teardown(self) -> None:
        if hasattr(self, "state"):
            assert not list(finish(self.scenario, self.state.world))


class ProcessesOfTwo(Processes):
    """The same with two sources. Each process declares one of them or both."""

    @initialize(
        events=st.lists(EVENTS, min_size=4, max_size=8),
        first=st.sampled_from(DRIVERS),
        history=st.sampled_from(((), *HISTORIES_OF_TWO)),
        declared=DECLARED,
    )
    def begin(
        self,
        events: list[Event],
        first: str,
        history: tuple[str, ...],
        declared: list[tuple[str, ...]],
    ) -> None:
        each = [event._replace(source=AB[place % 2]) for place, event in enumerate(events)]
        declares = (AB, ("a",), *declared, AB)
        self.begin_with(each, first, history, sources=AB, declared=declares)


TestProcesses = Processes.TestCase
TestProcessesOfTwo = ProcessesOfTwo.TestCase
TestProcesses.settings = TestProcessesOfTwo.settings = settings(
    max_examples=250 if IN_FULL else 25,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow],
)
