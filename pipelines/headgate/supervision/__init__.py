"""Looks after jobs as processes: launches them, reads their documents, stops them."""
