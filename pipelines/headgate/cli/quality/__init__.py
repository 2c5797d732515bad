"""``headgate quality``: what rules have decided."""
