"""Which cause of an account of link time to look at first, and whether any matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from anabranch.results import linktime
from anabranch.runs.parts import by_cause, of_outages

if TYPE_CHECKING:
    from anabranch.runs.parts import LinkTime
    from anabranch.runs.trials import WhatIf

_UNEXPLAINED, _REQUEST, _RECEIVE_WINDOW = "unexplained", "request", "receive-window"

_OF_RUNS = {
    "last-bytes": (0.08, 3.0),
    "idle-decay": (0.06, 0.0),
    **dict.fromkeys((_REQUEST, "start-up", "window", "loss-queue", "scheduler", "not-joined"), (0.06, 3.0)),
}
"""Causes that runs without a fault have, too: requests take a round trip, windows grow, and fill queues until these
drop packets. Such a cause matters from the first number on in one long download, which has the round trip of its
request once, and from so many times the share of requests more where these are many.

In 450 runs without a fault (papers/explain) last bytes had up to 0.071 more than what requests explain, and
every other cause less than 0.06. Windows decay in pauses, however short the round trips of requests are.
"""

_MOST = 0.25
"""From this share on, any cause matters. The largest one of 550 runs without a fault was 0.211."""

_LEAST_OF_OTHERS = 0.02
"""Another cause matters from this share on: runs without a fault have none, and less is no part of a fault that a
viewer would notice."""

_LEAST_GAIN = 0.05
"""A cause whose removal improves what is measured by this part matters whatever its share: on a busy link, little
time may cost a lot."""

_OF_REPLACEMENTS = 0.5
"""What another scheduler or control returns, or shorter round trips, counts as so much of it for the cause that it was
tried against: the rest is that of other causes."""


_OF_CAPTURES = {
    "last-bytes": _OF_RUNS["last-bytes"],
    "idle-decay": (0.02, 0.5),
    _REQUEST: (_MOST, 0.0),
    **dict.fromkeys(
        ("slower-or-shared", "scheduler-or-policy", "loss-queue", "start-up", "window", "not-joined", "send-buffer"),
        (0.03, 0.75),
    ),
}
"""The same for captures, where the round trips of requests have no part and are known apart.

Last bytes wait for the slowest path and its queue, which takes several round trips of the fastest one. A window that
decays by half in a short pause is as large as before after a round trip, of which half is lost. In the captures of 400
runs without a fault, last bytes had up to 0.013 more than three times the share of requests.
"""

_MOSTLY_FULL = 0.5
"""A receive window that is full for this part of the time matters whatever its share: no path shows its rate then."""


def matters(cause: str, causes: Mapping[str, float]) -> bool:
    """Whether a cause has more of what was possible than it has in runs without a fault.

    Args:
        cause: The key of the cause.
        causes: The share of each cause.
    """
    return causes.get(cause, 0.0) >= _least(_OF_RUNS, cause, causes.get(_REQUEST, 0.0))


def _least(usual: Mapping[str, tuple[float, float]], cause: str, requests: float) -> float:
    """The share from which on a cause matters, by what is usual without a fault and the share of requests."""
    alone, per_request = usual.get(cause, (_LEAST_OF_OTHERS, 0.0))
    return min(alone + per_request * requests, _MOST)


def first_cause(parts: Sequence[LinkTime], what_if: WhatIf | None) -> str | None:
    """The cause to look at first; none if none matters.

    By the account alone that is the largest one. With repeated runs, it is the cause of which the share of
    what was lost and the part of what can be returned are largest together: a large cause may cost nothing, and a
    remedy may help against other causes than its own.

    Args:
        parts: What was lost.
        what_if: What the run would have been without each cause, if that was tried.
    """
    shares = by_cause(part for part in of_outages(parts) if part.cause != _UNEXPLAINED)
    lost = sum(shares.values())
    scores = {cause: share / lost for cause, share in shares.items() if lost > 0.0}
    large = {cause for cause in shares if matters(cause, shares)}
    if what_if is not None:
        gains: dict[str, float] = {}
        for trial in what_if.trials:
            if trial.cause == linktime.USEFUL:
                continue
            gain = trial.gain * (_OF_REPLACEMENTS if trial.replaces else 1.0)
            gains[trial.cause] = max(gains.get(trial.cause, 0.0), gain)
        most = max(gains.values(), default=0.0)
        large |= {cause for cause, gain in gains.items() if gain > _LEAST_GAIN * abs(what_if.value)}
        for cause, gain in gains.items() if most > 0.0 else ():
            scores[cause] = scores.get(cause, 0.0) + gain / most
    return max((cause for cause in scores if cause in large), key=lambda cause: scores[cause], default=None)


def first_of_capture(parts: Sequence[LinkTime], requests: float, window_full: float) -> str | None:
    """The cause of a capture to look at first: the largest that matters; none if none does.

    Args:
        parts: What was lost.
        requests: The round trips of requests, as a part of the time of these and of the responses.
        window_full: For which part of the time of responses the receive window was full.
    """
    shares = {cause: share * (1.0 - requests) for cause, share in by_cause(of_outages(parts)).items()}
    shares[_REQUEST] = requests
    large = []
    for cause, share in shares.items():
        if share >= _least(_OF_CAPTURES, cause, requests) or (cause == _RECEIVE_WINDOW and window_full >= _MOSTLY_FULL):
            large.append(cause)
    return max(large, key=lambda cause: shares[cause], default=None)
