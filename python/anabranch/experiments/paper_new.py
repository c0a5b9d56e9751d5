"""The folder of a new paper: small, complete, and executable as it is."""

from __future__ import annotations

from pathlib import Path

from anabranch.errors import InputError
from anabranch.experiments.paper import CRITERIA, FILE, TEXT
from anabranch.system import outputs

_PAPER = """\
schema = 1
title = "{title}"
# source = "Where it was published"

# The plans whose runs the claims are tested by.
[[plan]]
file = "sessions.toml"

# Other values of what the paper leaves open: `anabranch reproduce --sensitivity` tests every claim again with each.
[[variant]]
name = "queues of 20 packets"
change = [{{ set = {{ "link.wifi.queue" = "20 packets", "link.lte.queue" = "20 packets" }} }}]
"""

_PLAN = """\
schema = 1
question = "Does the BLEST scheduler shorten the time for which bytes wait for earlier ones, against min-rtt?"
# A shipped scenario, or a file in this folder.
scenario = "mobile/wifi-lte"
seeds = 10
metrics = ["reorder_delay_s.mean", "stall_s"]

[set]
duration = "60 s"
"session.0.video.duration" = "20 s"
"session.0.video.seed" = "{seed}"

[vary]
"transport.scheduler" = ["min-rtt", "blest"]
"""

_CRITERIA = '''\
"""C1: what the paper claims, and the criteria, which were written before the measurement."""

from collections.abc import Iterator

from anabranch.experiments.claims import Finding, Quantity, Value, claim, lower, quantity
from anabranch.experiments.study import Case, Metric, Study

WAIT = Metric("wait for earlier bytes", "reorder_delay_s.mean", "ms", 1e3)


def scheduler(name: str) -> Case:
    """A condition of the plan sessions.toml, by the values of its axes."""
    return Case(name, "sessions", {"transport.scheduler": name})


@claim(
    "C1",
    "BLEST reduces head-of-line blocking",
    criterion="the mean wait of a byte for earlier ones is lower than with min-rtt, for certain",
    # One sentence per verdict. A value is quoted by its name, so that sentence and table agree.
    why={"reproduced": "BLEST leaves the slow path alone where that would block; bytes wait {saved:.1f} ms less"},
)
def c1(study: Study) -> Iterator[Finding | Quantity | Value]:
    """Paired by seed: the same video, the same rates."""
    yield lower(study, scheduler("blest"), scheduler("min-rtt"), WAIT)
    yield quantity(study, scheduler("min-rtt"), WAIT)
    yield quantity(study, scheduler("blest"), WAIT)
    yield Value("saved", -study.difference(scheduler("blest"), scheduler("min-rtt"), WAIT).estimate)
'''

_TEXT = """\
# {title}

With {{{{seeds}}}} seeds, claim C1 is {{{{C1.verdict}}}}: a byte waits {{{{C1.saved .1f}}}} ms less with BLEST than with
min-rtt.

## Verdicts

{{{{verdicts}}}}

## Measured values

{{{{played}}}}

{{{{quantities}}}}

## Verdicts that depend on assumptions

{{{{variants}}}}

## Every finding

{{{{findings}}}}
"""


def write(folder: Path) -> list[Path]:
    """Writes the files of a new paper.

    Raises:
        InputError: The folder exists.
        OSError: It cannot be written.
    """
    if folder.exists():
        raise InputError(f"{folder}: this exists already; expected the name of a new folder")
    title = folder.name.replace('"', "")
    texts = {
        FILE: _PAPER.format(title=title),
        "sessions.toml": _PLAN,
        CRITERIA: _CRITERIA,
        TEXT: _TEXT.format(title=title),
    }
    with outputs.writing(folder):
        folder.mkdir(parents=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]
