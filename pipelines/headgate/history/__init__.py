"""Whatever changes or keeps the past: replays of refused records, loads, backfills, savepoints,
repair, maintenance.
"""
