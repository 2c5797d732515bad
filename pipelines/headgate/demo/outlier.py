"""A bid that no rule of rows refuses, and that a rule of gold holds back."""

from __future__ import annotations

import json
from datetime import datetime

from headgate.demo.generator import Slice

TABLE = "channels_sliding"
"""The gold table of the examples whose suite it breaks: the channel's average is implausible."""


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
