"""The contract that all gold operators keep: their definitions in plain Python, and one history of
a pipeline that is lived in many layouts."""
