"""A Kafka broker for development, and a client for looking into any broker.

The broker is one node on 127.0.0.1 that dies with the process that started it. Nothing here knows
of pipelines.
"""

FOLDER = "_kafka"  # under the root; no pipeline's name begins so
