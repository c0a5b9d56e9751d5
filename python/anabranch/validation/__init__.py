"""The comparison with the kernel: the same test cases simulated and in real time, by the engine of experiments.

``criteria`` says what has to agree and how well, ``cases`` which test cases there are. ``campaign`` makes their runs
through a store, ``measurement`` reads what is compared from the metrics of a run, ``judgement`` compares, and
``report`` writes tables. ``recorded`` reads the live runs of an earlier report.
"""
