"""Triggers: they wait without holding a worker."""
