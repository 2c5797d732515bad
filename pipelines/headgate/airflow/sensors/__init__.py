"""Tasks that wait for gold."""
