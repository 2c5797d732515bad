"""The login: one password for a dashboard, stored as a hash."""
