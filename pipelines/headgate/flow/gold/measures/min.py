"""``min(x)``."""

from __future__ import annotations

from headgate.flow.gold.measures.extremes import Extreme

MEMBER = Extreme("min", "least")
