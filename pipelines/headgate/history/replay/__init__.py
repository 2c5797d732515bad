"""Replay of refused records: corrected copies go through bronze, silver and gold once more."""
