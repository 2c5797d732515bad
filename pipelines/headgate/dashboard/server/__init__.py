"""Serves questions and pages over HTTP. Everything needs a login but what says so."""
