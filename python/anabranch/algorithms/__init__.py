"""Own algorithms in Python: schedulers, congestion controls, path policies and bitrate rules.

`anabranch` itself has these names, too. A class with one of the four bases is used like a built-in algorithm. A
scenario names it ``module:Class``::

    [transport]
    scheduler = "my_module:MyScheduler"

>>> import anabranch
>>> class Fastest(anabranch.Scheduler):
...     def decide(self, view: anabranch.SchedulerView, trigger: anabranch.Trigger) -> anabranch.Subflow:
...         return min(view.candidates, key=lambda subflow: subflow.srtt)

The engine makes one object per connection end (schedulers and path policies), per subflow (congestion controls) or
per session (bitrate rules), with the options of the scenario as keyword arguments of the constructor. From the first
call of a method on, ``self.ctx`` has the time, random numbers, the engine's mathematics and `Context.emit`.

Units are the same everywhere: times in seconds, data in bytes, windows in packets. Names of rates have their unit or
state it.

What a method gets is valid during the call: the engine reuses these objects. Keep numbers, not objects.

The same scenario and seed must give the same decisions. So an algorithm draws from ``self.ctx.rng``, asks
``self.ctx.now`` for the time, and iterates over no set of texts, whose order differs from process to process.
"""

from anabranch._core import (
    Ack,
    AlgorithmError,
    Context,
    Decision,
    Download,
    Duplicate,
    InFlight,
    Ladder,
    Math,
    PlayerEvent,
    PlayerView,
    Progress,
    Rng,
    SchedulerView,
    Send,
    SentPacket,
    Siblings,
    Subflow,
    Wait,
    Window,
)
from anabranch.algorithms.bases import (
    AbrRule,
    CongestionControl,
    LossCause,
    PathPolicy,
    Scheduler,
    Trigger,
    overrides,
)
from anabranch.algorithms.loading import abr_rule, congestion_control, path_policy, scheduler

__all__ = [
    "AbrRule",
    "Ack",
    "AlgorithmError",
    "CongestionControl",
    "Context",
    "Decision",
    "Download",
    "Duplicate",
    "InFlight",
    "Ladder",
    "LossCause",
    "Math",
    "PathPolicy",
    "PlayerEvent",
    "PlayerView",
    "Progress",
    "Rng",
    "Scheduler",
    "SchedulerView",
    "Send",
    "SentPacket",
    "Siblings",
    "Subflow",
    "Trigger",
    "Wait",
    "Window",
    "abr_rule",
    "congestion_control",
    "overrides",
    "path_policy",
    "scheduler",
]
