"""`anabranch run`: one run of one scenario, simulated or in real time."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from anabranch.cli import completion, overrides
from anabranch.cli.console import Exit, answer, echo_json, err, fail, out, progress_bar, say_note, say_warning
from anabranch.cli.overrides import SetOption
from anabranch.errors import InputError
from anabranch.live.run import MODEL, SERVERS
from anabranch.live.run import run as run_live
from anabranch.results.metrics import DecisionLatency
from anabranch.runs import runfolder
from anabranch.runs.plots import of_captures, of_text
from anabranch.runs.plots import write as write_plots
from anabranch.runs.session import Run, simulate
from anabranch.system import outputs
from anabranch.wording import ending, summary

EXAMPLES = (
    'Example: anabranch run sticky/base --seed 7 --set transport.scheduler=gr-sty --set link.path1.loss="1 %"\n\n'
    "A run folder holds scenario.toml (every default filled in) with the files that it names, metrics.json, run.json, "
    "session.png, session.svg, and the numbers behind the figure (samples.parquet, incidents.parquet, notes.parquet "
    "of own algorithms that emit any).\n\n"
    "In real time, as root: anabranch run bulk/two-paths --set duration='10 s' --live --server kernel --client curl"
)


_Scenario = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A file, - for standard input, or the name of a shipped scenario (`anabranch list scenarios`).",
        show_default=False,
        autocompletion=completion.scenarios,
    ),
]
_Seed = Annotated[
    int | None,
    typer.Option(min=0, max=2**64 - 1, show_default="1", help="Where all randomness comes from."),
]
_Directory = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="The run folder; runs/SCENARIO-SEED-N where absent. An earlier run in it is replaced.",
    ),
]
_Session = Annotated[
    int | None,
    typer.Option(
        "--session",
        min=0,
        metavar="N",
        help="Which session to draw in detail, counted from 0; where absent the only one, or several side by side.",
        show_default=False,
    ),
]
_NoFigure = Annotated[
    bool, typer.Option("--no-figure", help="Draw no figure, which takes longer than most simulations.")
]
_AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON object on standard output and nothing else. A run folder is then written only with "
        "--out, --events or --pcap.",
    ),
]
_Events = Annotated[bool, typer.Option("--events", help="Record every event, as events.parquet in the run folder.")]
_Strict = Annotated[
    bool,
    typer.Option("--strict", help="Exit with code 1 if a session was cut off: stuck, or not done within the duration."),
]
_Live = Annotated[
    bool, typer.Option("--live", help="Run in real time on this machine: real kernels, real sockets. Needs root.")
]
_Server = Annotated[str | None, typer.Option(help="With --live, who serves: anabranch (ours, the default) or kernel.")]
_Client = Annotated[
    str | None,
    typer.Option(help="With --live, who watches: model (the scenario's player, the default), curl, vlc or dash.js."),
]
_Pcap = Annotated[
    bool,
    typer.Option(
        "--pcap",
        help="Capture the packets, in the run folder: headers at both ends as client.pcapng and server.pcapng, an "
        "interface per path; with --live at the client, as PATH.pcapng.",
    ),
]
_Plots = Annotated[
    str | None,
    typer.Option(
        "--plots",
        metavar="PLOTS",
        help="Plots of the packets of each subflow, in the run folder and its report: sequence (sequence numbers over "
        "time, with retransmissions, SACKs, acknowledgments and window), rtt (samples of the round trip), or both with "
        "a comma. For simulated runs.",
    ),
]
_Content = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="With --live, a folder of `anabranch content make` for vlc or dash.js to play."),
]


def run(
    scenario: _Scenario,
    seed: _Seed = None,
    given: SetOption = None,
    directory: _Directory = None,
    session: _Session = None,
    no_figure: _NoFigure = False,
    as_json: _AsJson = False,
    events: _Events = False,
    strict: _Strict = False,
    live: _Live = False,
    server: _Server = None,
    client: _Client = None,
    pcap: _Pcap = False,
    plots: _Plots = None,
    content: _Content = None,
) -> None:
    """Simulate a scenario, or run it in real time, and print what the viewer saw."""
    chosen = dict(overrides.split(given))
    if not live:
        _refuse({"server": server, "client": client, "content": content})
    elif plots is not None:
        raise InputError(
            "--plots is for simulated runs; expected --live without it, or --pcap and a program that draws"
        )
    wanted = () if plots is None else of_text(plots)

    def simulated(left: Path, progress: Callable[[float], None]) -> Run:
        captures = left if pcap or wanted else None
        return simulate(scenario, seed=_seed(seed), set=chosen, events=events, progress=progress, captures=captures)

    def in_real_time(left: Path, progress: Callable[[float], None]) -> Run:
        return run_live(
            scenario,
            folder=left,
            seed=_seed(seed),
            set=chosen,
            events=events,
            server=server or SERVERS[0],
            client=client or MODEL,
            pcap=pcap,
            content=content,
            progress=progress,
        )

    wants_folder = directory is not None or events or pcap or bool(wanted) or not as_json
    target = _Target(directory, session, not no_figure, wanted, pcap) if wants_folder else None
    if target is not None:
        runfolder.check_target(target.directory)
    work, verb = (in_real_time, "running") if live else (simulated, "simulating")
    try:
        done = _run(work, f"{verb} {scenario}", target, as_json)
    except KeyboardInterrupt:
        fail("interrupted", Exit.INTERRUPTED)
    if seed is not None and not done.metrics["seed_matters"]:
        say_note(ending.SEED_WITHOUT_EFFECT)
    if strict and ending.is_incomplete(done.metrics):
        fail("the run did not come to its end, which --strict demands", Exit.RUN_FAILED)


def _seed(given: int | None) -> int:
    return 1 if given is None else given


def _refuse(given: Mapping[str, object]) -> None:
    """Refuses options that only runs in real time have."""
    if idle := [name for name, value in given.items() if value is not None]:
        raise InputError(f"--{idle[0]} is for runs in real time; expected --live with it")


@dataclass(frozen=True)
class _Target:
    """The run folder that is wanted.

    Attributes:
        directory: Where; None for a new one.
        session: The session to draw, None for all.
        figure: Whether to draw it.
        plots: The plots of its packets.
        captures: Whether captures stay in it.
    """

    directory: Path | None
    session: int | None
    figure: bool
    plots: tuple[str, ...]
    captures: bool


def _run(
    work: Callable[[Path, Callable[[float], None]], Run], description: str, target: _Target | None, as_json: bool
) -> Run:
    """Runs, prints the metrics and what makes them doubtful, and writes the run folder."""
    # Captures and the files of a real player are written before there is a run folder.
    with tempfile.TemporaryDirectory(prefix="anabranch-") as temporary:
        left = Path(temporary)
        with progress_bar(description) as progress:
            done = work(left, progress)
        for warning in done.warnings:
            say_warning(warning.message)
        # The metrics are printed first, so that no failure of the folder or the figure loses them; and no failure of
        # the terminal, such as a closed pipe, loses the folder.
        try:
            _tell(done, as_json)
        finally:
            folder = None if target is None else _write(done, target, left)
        if folder is not None:
            (err() if as_json else out()).print(f"\nrun folder: {folder}", soft_wrap=True)
        return done


def _write(done: Run, target: _Target, left: Path) -> Path:
    try:
        folder = runfolder.write(done, target.directory, session=target.session, figure=target.figure)
        with outputs.writing(folder):
            if target.plots:
                write_plots(folder, done, of_captures(left, done), target.plots, target.session)
            for file in left.iterdir():
                if file.is_file() and (target.captures or not target.plots):
                    shutil.move(file, folder / file.name)
    except OSError as error:
        _rescue(done, target, left, error)
        raise
    return folder


def _rescue(done: Run, target: _Target, left: Path, error: OSError) -> None:
    """Writes a run whose folder cannot be written, such as on a full disk, where temporary files go."""
    with contextlib.suppress(OSError):
        rescued = Path(tempfile.mkdtemp(prefix="anabranch-rescued-"))
        try:
            runfolder.write(done, rescued, session=target.session, figure=target.figure)
        except OSError:
            shutil.rmtree(rescued, ignore_errors=True)
            raise
        for file in left.iterdir():
            if file.is_file():
                shutil.move(file, rescued / file.name)
        error.strerror = f"{error.strerror}; the finished run is in {rescued}"


def _latency(latency: DecisionLatency) -> str:
    """How long decisions of algorithms in Python took."""
    middle, most, longest = (f"{latency[key]:.0f} \u00b5s" for key in ("p50", "p99", "max"))
    decisions = summary.plural(latency["decisions"], "decision")
    return f"{decisions} in Python took {middle} (median), {most} (99 %), {longest} at most"


def _tell(done: Run, as_json: bool) -> None:
    metrics = done.metrics
    if as_json:
        echo_json({**metrics, "cpu_seconds": done.cpu_seconds})
        return
    answer(Text.assemble((str(metrics["scenario"]), "bold"), f", seed {done.seed}"))
    answer(summary.of_run(metrics))
    live = metrics.get("live")
    if live is None:
        took = f"{metrics['sim_seconds']:.0f} s simulated in {done.wall_seconds:.2f} s"
    else:
        late = summary.seconds(live["lateness_s"]["p99"])
        took = f"{metrics['sim_seconds']:.1f} s in real time, served by {live['server']}, links late by {late} (99 %)"
    answer(Text(f"{took}, {summary.count(metrics['packets'])} packets", style="dim"))
    if latency := live and live.get("decision_latency_us"):
        answer(Text(_latency(latency), style="dim"))
    for note in live["notes"] if live else ():
        err().print(Text(note, style="dim"))
    if live and live["void"]:
        err().print(
            Text("The machine was too busy: the links were late, so the numbers mean little.", style="bold yellow")
        )
