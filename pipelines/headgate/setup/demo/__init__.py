"""Synthetic bids for the demo, the tests and the benchmarks."""
