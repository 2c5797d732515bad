"""The dashboard: a read-only web application over gold, late rows, quarantine and the ledger."""

FOLDER = "_dashboard"
"""Of the password's hash, under the root; no pipeline's name begins so."""
PORT = 8090
