"""The results of rules so far, as values and as a page."""
