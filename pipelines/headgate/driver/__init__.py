"""The long-running driver: session, lease, micro-batches, graceful stop."""
