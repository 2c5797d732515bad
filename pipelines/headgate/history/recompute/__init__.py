"""Proves that gold has the rows of its definition: computes them again from silver and late."""
