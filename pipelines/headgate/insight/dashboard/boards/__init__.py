"""Dashboards that a project declares: charts by SQL over gold tables."""
