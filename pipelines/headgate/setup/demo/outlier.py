"""A bid that meets all rules of silver, and makes a gold table break a rule."""

from __future__ import annotations

import json
from datetime import datetime

from headgate.setup.demo.generator import Slice

TABLE = "channels_sliding"
"""The gold table of the examples whose suite the bid breaks: its channel's average is
implausible."""


def outlier(at: datetime) -> Slice:
    """One bid that arrives ``at``."""
    bid = {
        "event_id": "bid-outlier",
        "auction": 1000,
        "bidder": 1,
        "price": 0.01,
        "channel": "fax",
        "url": "https://bids.example/vase/1",
        "event_time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    return Slice([json.dumps(bid, separators=(",", ":")).encode()], at)
