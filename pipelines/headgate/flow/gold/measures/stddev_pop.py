"""``stddev_pop(x)``."""

from __future__ import annotations

from headgate.flow.gold.measures.spread import OF_ALL, Spread


class StandardDeviationOfAll(Spread):
    name, of_sample, is_root = "stddev_pop", False, True
    result = OF_ALL


MEMBER = StandardDeviationOfAll()
