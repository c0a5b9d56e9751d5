"""What programs find in addition to single runs: sweeps and comparisons, and what can be named."""
