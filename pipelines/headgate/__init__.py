"""Headgate: an exact pipeline from events to bronze, silver and gold tables."""
