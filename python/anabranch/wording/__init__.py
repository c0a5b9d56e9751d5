"""Numbers and endings of runs in words."""
