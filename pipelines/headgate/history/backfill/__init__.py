"""Backfills: final windows of a range of event time, computed again from bronze and compared."""
