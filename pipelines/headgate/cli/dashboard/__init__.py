"""The verb that shows tables in a browser."""
