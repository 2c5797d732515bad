"""``max(x)``."""

from __future__ import annotations

from headgate.measures.extremes import Extreme

MEMBER = Extreme("max", "greatest")
