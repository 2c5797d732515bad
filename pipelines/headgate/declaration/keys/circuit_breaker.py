"""The keys of a declaration's `circuit_breaker`."""

from __future__ import annotations

from headgate.declaration.keys.key import Key
from headgate.declaration.settings import CircuitBreaker

CIRCUIT_BREAKER = Key(
    "circuit_breaker",
    "section",
    "Publications of gold and late rows pause while the input breaks one of these limits. Bronze, "
    "silver and gold go on. Publications continue by themselves once the newest batches are good.",
    children=(
        Key(
            "refused_above",
            "share",
            "Publications pause while a larger share of the newest records is quarantined, or is "
            "rejected by the rules of a silver table.",
        ),
        Key(
            "records_below",
            "integer",
            "Publications pause while the newest batches together have fewer records.",
            low=1,
            high=10**12,
        ),
        Key(
            "batches",
            "integer",
            "The number of newest batches that count. Until there are as many, nothing pauses.",
            default=str(CircuitBreaker.batches),
            low=1,
            high=1000,
        ),
    ),
)
