"""Replay of refused records: mended copies go through bronze, silver and gold once more."""
