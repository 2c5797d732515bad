"""``variance(x)`` of the sample."""

from __future__ import annotations

from headgate.flow.gold.measures.spread import OF_SAMPLE, Spread


class Variance(Spread):
    name, of_sample, is_root = "variance", True, False
    result = OF_SAMPLE
    synonyms = ("var_samp",)


MEMBER = Variance()
