"""Scenarios that are run, and the folders in which runs are kept."""
