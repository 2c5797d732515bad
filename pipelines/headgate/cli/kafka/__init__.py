"""``headgate kafka``: a broker for development, and a view of topics."""
