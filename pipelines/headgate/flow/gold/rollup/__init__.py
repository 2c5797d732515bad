"""Rollups: gold tables that read the final rows of other gold tables."""
