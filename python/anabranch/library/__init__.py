"""What programs find beside single runs: sweeps and comparisons, and what can be named."""
