"""``headgate kafka``: a broker to develop with, and a look into topics."""
