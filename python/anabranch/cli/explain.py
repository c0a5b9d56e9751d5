"""`anabranch explain`: why a session was not faster, or why it froze."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.padding import Padding

from anabranch import _core
from anabranch.cli import completion, overrides
from anabranch.cli.console import answer, echo, echo_json, progress_bar
from anabranch.cli.overrides import SetOption
from anabranch.errors import InputError
from anabranch.runs.captured import CaptureExplanation, explain_capture
from anabranch.runs.explanation import Explanation
from anabranch.runs.explanation import explain as find
from anabranch.runs.parts import SHARED, LinkTime
from anabranch.runs.trials import Trial, WhatIf
from anabranch.system import outputs
from anabranch.wording import causes, quantities
from anabranch.wording.quantities import Quantity

EXAMPLES = (
    "Example: anabranch explain sticky/base --stall 1\n\n"
    "A download of a run that was made: anabranch explain runs/one-pipe-chunks-1-5-1-1 --segment 3\n\n"
    "A capture of any server of TCP or Multipath TCP: anabranch explain --pcap server.pcapng"
)

_MOST_LINES = 8
"""Causes that are listed; the rest is summed. With the head there are at most fifteen lines."""

_MOST_STALLS = 10
"""Stalls of which the lengths are listed."""

_LEAST_SHARE = 0.001
"""Causes with less than this share of what was possible are summed."""

_MOST_TRIALS = 4
"""Remedies that are listed; the others are named."""

_LEAST_GAIN = 0.01
"""A remedy that changes the measure by less than this part is only named."""

_LONGEST_OPTIONS = 400
"""Characters of the options of a remedy; longer ones would hide the other remedies."""

_Source = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN]",
        help="A run folder of a simulated run, a scenario's file, or the name of a shipped scenario.",
        show_default=False,
        autocompletion=completion.scenarios,
    ),
]
_Seed = Annotated[
    int | None,
    typer.Option(
        min=0, max=2**64 - 1, show_default="1", help="The seed of a scenario's run; a run folder has its own."
    ),
]
_Session = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help="Which session, counted from 0: the first; of a capture, that with most data."
    ),
]
_Stall = Annotated[
    int | None,
    typer.Option(
        "--stall",
        min=1,
        metavar="N",
        help="Explain this stall, counted from 1: from when the buffer was fullest to the end of the stall.",
    ),
]
_Segment = Annotated[
    int | None,
    typer.Option("--segment", min=0, metavar="N", help="Explain this media segment or download, counted from 0."),
]
_At = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help='Explain the response that was due at this time, such as "41.2 s".'),
]
_Capture = Annotated[
    Path | None,
    typer.Option(
        "--pcap",
        metavar="FILE",
        help="Explain a capture (pcap or pcapng) in place of a run: of any sender, taken at the sender.",
    ),
]
_Player = Annotated[
    Path | None,
    typer.Option(
        "--player",
        metavar="FILE",
        help="With --pcap: the events of the player, as JSON, for --stall N and a list of the stalls.",
    ),
]


def explain(
    source: _Source = None,
    seed: _Seed = None,
    given: SetOption = None,
    session: _Session = None,
    stall: _Stall = None,
    segment: _Segment = None,
    at: _At = None,
    what_if: Annotated[
        bool,
        typer.Option("--what-if", help="Repeat the run without each of the largest causes, and say what that returns."),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw link time by cause over time: a .png, .svg or .pdf file."),
    ] = None,
    pcap: _Capture = None,
    player: _Player = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")
    ] = False,
) -> None:
    """Say where the link time of a session went: to new data, or to which causes."""
    if pcap is not None:
        of_runs = {"RUN": source, "--seed": seed, "--set": given, "--segment": segment, "--at": at}
        _require_none(**of_runs, **{"--plot": plot, "--what-if": what_if or None})
        if stall is not None and player is None:
            raise InputError("--stall of a capture is explained with the events of the player; expected --player FILE")
        _tell_capture(explain_capture(pcap, session=session, player=player, stall=stall), as_json=as_json)
        return
    if player is not None:
        raise InputError("--player: only with --pcap; a run has the events of its own player")
    if source is None:
        raise InputError("nothing to explain; expected a run, a scenario, or --pcap FILE")
    when = None if at is None else _core.time_s(at)
    shown = contextlib.nullcontext(None) if as_json else progress_bar(f"simulating {source}")
    with shown as progress:
        found = find(
            source,
            seed=1 if seed is None else seed,
            set=dict(overrides.split(given)),
            session=session or 0,
            stall=stall,
            segment=segment,
            at=when,
            what_if=what_if,
            progress=progress,
        )
    if plot is not None:
        with outputs.writing(plot):
            found.save_figure(plot)
    if as_json:
        echo_json(found.as_dict())
    else:
        answer("\n".join(_lines(found)))
        # A line that is to be copied stays one line, however long.
        for line in _tried(found.what_if):
            echo(line)
        if rest := _others(found.what_if):
            answer(Padding(rest, (0, 0, 0, 2)))


def _require_none(**of_runs: object) -> None:
    """Refuses what only runs have."""
    if wrong := [name for name, value in of_runs.items() if value is not None]:
        raise InputError(f"{', '.join(wrong)}: not with --pcap, which explains a session of a capture, or its stalls")


def _tell_capture(found: CaptureExplanation, *, as_json: bool) -> None:
    if as_json:
        echo_json(found.as_dict())
        return
    rate = found.possible_bits / found.due_s / 1e6 if found.due_s else 0.0
    lines = [
        f"{found.file}, session {found.session} of {found.sessions}: {found.name}, {found.question}",
        _verdict(found, causes.of_capture),
        f"For {found.due_s:.2f} s a response was due, and the paths at their best carry {rate:.2f} Mb/s. Of this:",
        *_shares(
            found.useful_share,
            [(part.share, part.path, causes.of_capture(part.cause, part.by)) for part in found.parts],
        ),
    ]
    if found.stalls_s:
        lines.append(_stalls(found))
    answer("\n".join([*lines, *found.lacks]))


def _stalls(found: CaptureExplanation) -> str:
    """A sentence with the stalls of the player."""
    lengths = [f"{end - begin:.1f} s" for begin, end in found.stalls_s[:_MOST_STALLS]]
    more = len(found.stalls_s) - len(lengths)
    rest = f", and {more} more" if more else ""
    times = "once (--stall 1)" if len(found.stalls_s) == 1 else f"{len(found.stalls_s)} times (--stall 1 and on)"
    return f"The player stalled {times}, for {', '.join(lengths)}{rest}."


def _lines(found: Explanation) -> list[str]:
    """The explanation, a sentence or a cause a line."""
    rate = found.possible_bits / found.due_s / 1e6 if found.due_s else 0.0
    lines = [f"{found.scenario}, seed {found.seed}, {found.session}: {found.question}"]
    lines.append(_verdict(found, causes.phrase))
    if found.buffer_s is not None:
        lines.append(f"From {found.begin_s:.1f} s on, the buffer fell from {found.buffer_s:.1f} s to nothing.")
    lines.append(
        f"For {found.due_s:.2f} s a response was due, and the links could have carried {rate:.2f} Mb/s. Of this:"
    )
    parts = [(part.share, part.path, causes.phrase(part.cause, part.by)) for part in found.parts]
    return [*lines, *_shares(found.useful_share, parts)]


def _verdict(found: Explanation | CaptureExplanation, phrase: Callable[[str, str | None], str]) -> str:
    """A sentence with the cause to look at first, and its path."""
    if found.first_cause is None:
        return "No fault found: no cause has more than in runs without a fault."
    who = _who_shares(found.parts, found.first_path) if found.first_cause == SHARED else None
    # The requests of a capture are on no path.
    return f"Look first at {found.first_path or 'requests'}: {phrase(found.first_cause, who)}."


def _who_shares(parts: Sequence[LinkTime], path: str | None) -> str | None:
    """The connection that most of what others sent on a path is of. The largest part comes first."""
    return next((part.by for part in parts if (part.cause, part.path) == (SHARED, path)), None)


def _shares(useful: float, parts: list[tuple[float, str, str]]) -> list[str]:
    """A line for new data, and one for each of the largest parts: share, path and cause."""
    listed = [part for part in parts if part[0] >= _LEAST_SHARE][:_MOST_LINES]
    rest = parts[len(listed) :]
    width = max((len(path) for _, path, _ in listed), default=0)
    shares = [(useful, "", "new data"), *listed]
    if rest:
        shares.append((sum(share for share, _, _ in rest), "", f"{len(rest)} smaller parts"))
    return [f"  {_percent(share):>6}  {path:<{width}}  {what}" for share, path, what in shares]


def _tried(what_if: WhatIf | None) -> list[str]:
    """What the run would have been without each cause, a remedy a line."""
    if what_if is None:
        return []
    if not what_if.trials:
        return ["", "No cause is large enough to try the run without it."]
    shown = quantities.of_metric(what_if.measure)
    lines = ["", f"In this run: {shown.name} {_value(what_if.value, shown)}. In the same run with"]
    for trial in _helping(what_if):
        change = f"{_value(trial.gain, shown)} {'less' if what_if.lower_is_better else 'more'}"
        lines.append(f"  {_value(trial.value, shown):>12}  ({change})  {trial.what}:")
        options = " ".join(f"--set {shlex.quote(f'{key}={value}')}" for key, value in trial.set.items())
        too_long = f"({len(trial.set)} keys, too long for here: --json has them)"
        lines.append("      " + (options if len(options) <= _LONGEST_OPTIONS else too_long))
    return lines


def _helping(what_if: WhatIf) -> list[Trial]:
    """The remedies that are listed."""
    return [trial for trial in what_if.trials if trial.gain > _LEAST_GAIN * abs(what_if.value)][:_MOST_TRIALS]


def _others(what_if: WhatIf | None) -> str:
    """A sentence with the remedies that are not listed; empty if all are."""
    if what_if is None:
        return ""
    helping = _helping(what_if)
    others = [trial.what for trial in what_if.trials if trial not in helping]
    won = "less is won by" if helping else "little or nothing is won by"
    return f"{won} {'; '.join(others)}" if others else ""


def _value(value: float, shown: Quantity) -> str:
    unit = f" {shown.unit}" if shown.unit else ""
    return f"{value * shown.scale:.2f}{unit}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
