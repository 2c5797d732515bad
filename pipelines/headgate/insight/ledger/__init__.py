"""Accounts for every event, from the tables' logs alone or, by id, from the tables themselves."""

from __future__ import annotations

from headgate.insight.ledger.account import Ledger
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.deployed import deployed

__all__ = ["Ledger", "balance", "deployed"]
