"""What sources and sinks of Kafka share in a declaration: keys, values, plan lines."""
