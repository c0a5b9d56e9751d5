"""Built-in algorithms written again in Python: models for own ones, with the same results to the last byte."""
