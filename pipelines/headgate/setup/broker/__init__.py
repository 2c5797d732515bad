"""A Kafka broker for development, and a client for any broker.

The broker is one node on 127.0.0.1 that ends with the process that started it. Nothing here depends
on pipelines.
"""

FOLDER = "_kafka"  # under the root; no pipeline's name begins with an underscore
