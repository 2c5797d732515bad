"""``var_pop(x)``."""

from __future__ import annotations

from headgate.flow.gold.measures.spread import OF_ALL, Spread


class VarianceOfAll(Spread):
    name, of_sample, is_root = "var_pop", False, False
    result = OF_ALL


MEMBER = VarianceOfAll()
