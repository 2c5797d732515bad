"""Lineage for OpenLineage receivers: what a pipeline read and wrote for each hour that is final,
and in each backfill. Nothing is sent unless a receiver is configured."""
