"""Serves questions and pages over HTTP. If there is a login, everything except ``login.OPEN`` needs
it."""
