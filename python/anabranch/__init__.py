"""Anabranch: multipath video streaming, from the equation to the wire.

>>> import anabranch
>>> run = anabranch.run("sticky/base", seed=7, set={"transport.scheduler": "gr-sty"})  # doctest: +SKIP
>>> run.metrics["sessions"][0]["stalls"]  # doctest: +SKIP
0
"""

from anabranch._core import InputError, __version__
from anabranch.algorithms import (
    AbrRule,
    AlgorithmError,
    CongestionControl,
    PathPolicy,
    Scheduler,
    abr_rule,
    congestion_control,
    path_policy,
    scheduler,
)
from anabranch.session import Run, run
from anabranch.warning import RunWarning

__all__ = [
    "AbrRule",
    "AlgorithmError",
    "CongestionControl",
    "InputError",
    "PathPolicy",
    "Run",
    "RunWarning",
    "Scheduler",
    "__version__",
    "abr_rule",
    "congestion_control",
    "path_policy",
    "run",
    "scheduler",
]
