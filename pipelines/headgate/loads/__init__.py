"""Loads of history: asked for by a person, carried out by bronze's job beside the stream."""
