"""Verbs that only tell: what is planned, running, accounted for, in the tables and the logs."""
