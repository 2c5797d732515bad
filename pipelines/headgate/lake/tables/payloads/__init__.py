"""What the commits of each kind of table carry beside the position: one module per payload."""
