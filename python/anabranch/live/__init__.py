"""Live runs: real links, real kernels, real players."""
