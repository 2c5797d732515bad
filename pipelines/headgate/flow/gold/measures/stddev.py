"""``stddev(x)`` of the sample."""

from __future__ import annotations

from headgate.flow.gold.measures.spread import OF_SAMPLE, Spread


class StandardDeviation(Spread):
    name, of_sample, is_root = "stddev", True, True
    result = OF_SAMPLE
    synonyms = ("stddev_samp", "std")


MEMBER = StandardDeviation()
