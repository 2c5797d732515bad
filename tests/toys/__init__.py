"""Implementations of the engine's contracts that the engine does not know, as from another package.
``installed/`` has the files that pip would write."""
