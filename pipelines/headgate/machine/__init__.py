"""What Headgate needs of a machine: Java and its jars, the JVM, trees of processes."""
