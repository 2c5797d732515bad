"""What brings a machine and a project into being: checks, a new project, the demo, a local Airflow,
a broker for development.
"""
