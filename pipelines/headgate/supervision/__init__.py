"""Supervises jobs: launches their processes, reads their documents, stops them.

``launcher`` is the contract; ``local`` starts and stops processes of this machine. ``job_state``
reads what jobs do; ``supervisor`` decides from it whether a stream is started again.
"""
