"""How a history is divided into batches, steps, drivers and jobs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from headgate.driver.operating import take_in_requests
from headgate.history.loads.requests import LoadRequest, all_loads
from tests.support.engine import Engine
from tests.support.failing import Died, passing

PLACES = ("silver.", "late.", "gold.", "operation.", "load.")


@dataclass(frozen=True)
class Layout:
    """Everything in one batch wherever the history allows it, and one driver."""

    name: str

    def begin(self, engine: Engine) -> None:
        """A driver has just started."""

    def catch_up(self, engine: Engine) -> None:
        engine.catch_up()

    def settle(self, engine: Engine) -> None:
        """Catch up if this layout does so after each batch and operation."""
        self.catch_up(engine)

    def deliver(self, engine: Engine, first: int, last: int) -> None:
        """Process the files after number ``first`` up to number ``last``."""
        engine.ingest(last)
        self.settle(engine)

    def decide(self, engine: Engine, operation: str, **document: Any) -> None:
        engine.operate(operation, **document)

    def take_in(self, engine: Engine) -> None:
        """Take in requests, and carry them out."""
        take_in_requests(engine.layout, engine.runtime, engine.clock, lambda _: None)
        self.settle(engine)

    def load(self, engine: Engine, load: LoadRequest) -> None:
        engine.load()


class FileByFile(Layout):
    """Each file is a batch."""

    def deliver(self, engine: Engine, first: int, last: int) -> None:
        for end in range(first + 1, last + 1):
            engine.ingest(end)
            self.settle(engine)


class NewDrivers(FileByFile):
    """A new driver starts after each catch-up."""

    def catch_up(self, engine: Engine) -> None:
        engine.catch_up()
        engine.start()


class BehindInSteps(FileByFile):
    """Silver and gold catch up only when the history needs it, in bounded steps."""

    def settle(self, engine: Engine) -> None:
        pass

    def catch_up(self, engine: Engine) -> None:
        while not engine.runtime.catch_up(engine.clock(), one_step=True):
            pass


class Jobs(FileByFile):
    """Each layer has a job of its own, and those of silver and gold are new each time."""

    def begin(self, engine: Engine) -> None:
        engine.start(("bronze",))

    def catch_up(self, engine: Engine) -> None:
        engine.catch_up_per_layer()

    def load(self, engine: Engine, load: LoadRequest) -> None:
        """Bronze's job waits until gold's job has carried out a replay."""
        while is_open(engine, load):
            engine.load()
            self.catch_up(engine)


class JobsBehind(Jobs):
    """As ``Jobs``; silver and gold catch up only when the history needs it."""

    def settle(self, engine: Engine) -> None:
        pass


def is_open(engine: Engine, load: LoadRequest) -> bool:
    loads = all_loads(engine.layout, engine.pipeline.name)
    return any(each.id == load.id and each.wish == "open" for each in loads)


@dataclass(frozen=True)
class Deaths(FileByFile):
    """The driver dies at failpoints of silver, late, gold and operations, and a new one goes on.
    ``dies`` is asked with the name of a failpoint and how often it was passed."""

    dies: Callable[[str, int], bool]
    passed: Counter[str]
    deaths: Counter[str]

    def catch_up(self, engine: Engine) -> None:
        self._despite(engine, engine.catch_up)

    def decide(self, engine: Engine, operation: str, **document: Any) -> None:
        # The decision is there, also if the driver has died just after it.
        self._once(engine, lambda: engine.operate(operation, **document))

    def load(self, engine: Engine, load: LoadRequest) -> None:
        self._despite(engine, engine.load)

    def _despite(self, engine: Engine, act: Callable[[], None]) -> None:
        while not self._once(engine, act):
            pass

    def _once(self, engine: Engine, act: Callable[[], None]) -> bool:
        """Returns whether the driver has survived."""
        try:
            with passing(self._pass):
                act()
        except Died:
            engine.start()
            return False
        return True

    def _pass(self, place: str) -> None:
        if place.startswith(PLACES):
            self.passed[place] += 1
            if self.dies(place, self.passed[place]):
                self.deaths[place] += 1
                raise Died(place)


def deaths(name: str, dies: Callable[[str, int], bool]) -> Deaths:
    return Deaths(name, dies, Counter(), Counter())


def at_passages(passages: Iterable[int]) -> Callable[[str, int], bool]:
    """Die at these passages of each failpoint."""
    wanted = frozenset(passages)
    return lambda _, passage: passage in wanted


def by_chance(seed: int, share: float) -> Callable[[str, int], bool]:
    """Die at each failpoint the first time, and at a share of all passages."""
    chance = random.Random(seed)
    return lambda _, passage: passage == 1 or chance.random() < share
