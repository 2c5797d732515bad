"""The Kafka source: topics of a broker are a log already; this lists it and reads ranges of it."""
