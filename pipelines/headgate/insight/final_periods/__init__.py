"""Which hours and days of gold are final, and which of them have changed."""
