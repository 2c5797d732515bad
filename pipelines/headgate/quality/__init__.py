"""What rules have decided so far, as values and as a page."""
