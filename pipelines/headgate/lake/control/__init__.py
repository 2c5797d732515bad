"""Documents about a running driver: its lease, requests to it, and what it reports."""
