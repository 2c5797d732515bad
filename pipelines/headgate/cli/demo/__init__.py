"""``headgate demo``: its broker, its screen, and how it ends."""
