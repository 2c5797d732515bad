"""``headgate late``: late rows, and their replay."""
