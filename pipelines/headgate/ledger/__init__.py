"""Accounts for every event, from the tables' logs alone or, by id, from the tables themselves."""

from __future__ import annotations

from headgate.ledger.account import Ledger
from headgate.ledger.balance import balance
from headgate.ledger.deployed import deployed

__all__ = ["Ledger", "balance", "deployed"]
