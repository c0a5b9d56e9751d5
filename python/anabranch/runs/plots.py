"""Plots of a run's packets per subflow, for ``run --plots``: their table and their figures in a run folder."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch.errors import InputError, alternatives
from anabranch.results import capture, sequence
from anabranch.results.metrics import Metrics
from anabranch.results.recording import Recording
from anabranch.results.sequence import Sequences
from anabranch.runs.finished import FinishedRun

PLOTS = ("sequence", "rtt")
"""The plots that there are."""

TABLE = "subflows.parquet"
FIGURES = tuple(f"{plot}.{suffix}" for plot in PLOTS for suffix in ("png", "svg"))


def of_text(text: str) -> tuple[str, ...]:
    """The plots that a list with commas names, such as ``sequence,rtt``.

    Raises:
        InputError: There is no such plot.
    """
    named = [part.strip() for part in text.split(",")]
    for name in named:
        if name not in PLOTS:
            raise InputError(f"--plots {text}: there is no plot `{name}`{alternatives(name, PLOTS)}")
    return tuple(plot for plot in PLOTS if plot in named)


def of_captures(folder: Path, run: FinishedRun) -> Sequences:
    """What the captures of a run say of those of its sessions that are recorded.

    Args:
        folder: Where ``server.pcapng`` is.
        run: The run.

    Raises:
        OSError: It cannot be read.
    """
    return sequence.of_packets(capture.read(folder / "server.pcapng"), len(run.recording.sessions))


def write(folder: Path, run: FinishedRun, sequences: Sequences, plots: Sequence[str], session: int | None) -> None:
    """Writes the table of all sessions, and the figures of one.

    Args:
        folder: The run folder.
        run: The run.
        sequences: What its captures say.
        plots: Which plots.
        session: Which session is drawn; the first one where absent.

    Raises:
        OSError: Something cannot be written.
    """
    from anabranch.figures import style

    sequence.frame(sequences).write_parquet(folder / TABLE)
    own = sequences.of(session or 0)
    if not own.subflows:
        return
    for plot in plots:
        figure = _drawn(plot, run.recording, run.metrics, tomllib.loads(run.scenario), own, run.seed)
        for name in FIGURES:
            if name.startswith(f"{plot}."):
                style.save(figure, folder / name)


def _drawn(
    plot: str, recording: Recording, metrics: Metrics, scenario: Mapping[str, Any], own: Sequences, seed: int
) -> Any:
    from anabranch.figures import ending
    from anabranch.figures.run import policies
    from anabranch.figures.sequence import draw_round_trips, draw_sequences

    number = own.subflows[0].session
    name = f", {metrics['sessions'][number]['name']}" if len(metrics["sessions"]) > 1 else ""
    draw = {"sequence": draw_sequences, "rtt": draw_round_trips}[plot]
    return draw(
        own,
        title=f"{metrics['scenario']}{name}",
        subtitle=f"{policies(scenario)}, seed {seed}",
        happened=(recording.marks, ending.of_session(metrics, number)),
        span_s=float(recording.sessions[number].times_s[-1]),
        paths=tuple(scenario["path"]),
    )


def read(folder: Path) -> Sequences | None:
    """What a run folder has of its subflows; nothing where ``run --plots`` did not write it.

    Raises:
        InputError: The table is damaged.
    """
    from anabranch.system import regular

    return sequence.of_frame(regular.read_parquet(folder / TABLE)) if (folder / TABLE).exists() else None
