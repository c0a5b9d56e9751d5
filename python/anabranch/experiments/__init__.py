"""Experiments: a plan varies a scenario, a sweep makes its runs, and statistics compare them.

``docs/architecture.md`` has the modules in the order of the data.
"""
