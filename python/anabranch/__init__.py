"""Anabranch: multipath video streaming, from the equation to the wire.

>>> import anabranch
>>> run = anabranch.run("sticky/base", seed=7, set={"transport.scheduler": "gr-sty"})  # doctest: +SKIP
>>> run.metrics.sessions[0].stalls  # doctest: +SKIP
0

Runs: `run`, `Scenario`. Many of them: `sweep`, `compare`. What can be named:
`schedulers`, `congestion_controls`, `path_policies`, `response_pacings`, `players`, `abr_rules`,
`queues`, `loss_models`, `ladders`, `synthetic_rates`, `reducers`, `scenarios`,
`plans`, `papers`. Rates of links: `anabranch.traces`. Own algorithms: `Scheduler`, `CongestionControl`, `PathPolicy`,
`AbrRule`, and what their methods get and return, such as `Subflow` and `PlayerView`.
Times are in seconds, rates in bit/s, sizes in bytes; every number's name ends in its unit.
"""

from anabranch._core import __version__
from anabranch.algorithms import (
    AbrRule,
    Ack,
    AlgorithmError,
    CongestionControl,
    Context,
    Decision,
    Download,
    Duplicate,
    InFlight,
    Ladder,
    LossCause,
    Math,
    PathPolicy,
    PlayerEvent,
    PlayerView,
    Progress,
    Rng,
    Scheduler,
    SchedulerView,
    Send,
    SentPacket,
    Siblings,
    Subflow,
    Trigger,
    Wait,
    Window,
    abr_rule,
    congestion_control,
    path_policy,
    scheduler,
)
from anabranch.errors import InputError
from anabranch.library.catalogue import (
    abr_rules,
    congestion_controls,
    ladders,
    loss_models,
    papers,
    path_policies,
    plans,
    players,
    queues,
    reducers,
    response_pacings,
    scenarios,
    schedulers,
    synthetic_rates,
)
from anabranch.library.many import Compared, Swept, compare, sweep
from anabranch.runs.captured import CaptureExplanation, explain_capture
from anabranch.runs.explanation import Explanation, explain
from anabranch.runs.scenario import Scenario
from anabranch.runs.session import Run, run
from anabranch.runs.warning import RunWarning

__all__ = [
    "AbrRule",
    "Ack",
    "AlgorithmError",
    "CaptureExplanation",
    "Compared",
    "CongestionControl",
    "Context",
    "Decision",
    "Download",
    "Duplicate",
    "Explanation",
    "InFlight",
    "InputError",
    "Ladder",
    "LossCause",
    "Math",
    "PathPolicy",
    "PlayerEvent",
    "PlayerView",
    "Progress",
    "Rng",
    "Run",
    "RunWarning",
    "Scenario",
    "Scheduler",
    "SchedulerView",
    "Send",
    "SentPacket",
    "Siblings",
    "Subflow",
    "Swept",
    "Trigger",
    "Wait",
    "Window",
    "__version__",
    "abr_rule",
    "abr_rules",
    "compare",
    "congestion_control",
    "congestion_controls",
    "explain",
    "explain_capture",
    "ladders",
    "loss_models",
    "papers",
    "path_policies",
    "path_policy",
    "plans",
    "players",
    "queues",
    "reducers",
    "response_pacings",
    "run",
    "scenarios",
    "scheduler",
    "schedulers",
    "sweep",
    "synthetic_rates",
]
