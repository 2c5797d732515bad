"""Verbs that show: plan, status, list, ledger, query and logs."""
