"""Who may look: one password for a dashboard, kept as a hash."""
