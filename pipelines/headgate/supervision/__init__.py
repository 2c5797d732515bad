"""Supervises jobs: launches their processes, reads their documents, stops them."""
