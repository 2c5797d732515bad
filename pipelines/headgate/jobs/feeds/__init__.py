"""What makes a job's stream move: one feed per kind of source, and one for the tables above."""
