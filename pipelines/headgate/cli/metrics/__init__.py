"""The verb that serves metrics."""
