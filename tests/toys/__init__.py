"""Members of the engine's contracts that the engine does not know: another package's, as pip would
install it. ``installed/`` has what pip writes."""
