"""What people and other systems are told: the ledger, queries, quality, status, final periods,
metrics, lineage, the dashboard.
"""
