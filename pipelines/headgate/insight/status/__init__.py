"""How a stream is: its health, how fresh gold is, and what a person has to decide."""
