"""``headgate load``: history beside the live stream."""
