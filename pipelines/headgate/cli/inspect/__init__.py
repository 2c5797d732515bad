"""Verbs that show: status, list, query and versions."""
