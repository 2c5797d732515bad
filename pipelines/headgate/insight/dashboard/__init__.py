"""The dashboard: a read-only web application over gold, late rows, quarantine and the ledger."""

FOLDER = "_dashboard"
"""The folder of the password's hash, under the root. No pipeline's name begins with ``_``."""
PORT = 8090
