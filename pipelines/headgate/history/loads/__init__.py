"""Loads of history: requested by a person, carried out by bronze's job beside the stream."""
