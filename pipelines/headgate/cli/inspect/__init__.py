"""Verbs that show: status, list, query, versions and logs."""
