"""What happened during a run, sampled at a fixed interval: the numbers behind the figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

    from anabranch import _core

Array = NDArray[np.float64]
"""One value per sample, or one per instant."""


@dataclass(frozen=True, slots=True)
class PathRecording:
    """What one session did on one path, sampled; not a number while no subflow uses it.

    Attributes:
        path: The path's name.
        throughput_bps: Payload acknowledged since the previous sample, in bits per second.
        cwnd_packets: The congestion window in packets.
        srtt_s: The smoothed round trip in seconds.
        disabled_s: Beginning and end of each span in which the path policy forbade new data, shape (n, 2).
        capacity_bps: The mean rate that the path's slowest downlink allowed since the previous sample, headers
            included: infinite without a limit, not a number where an older version recorded none.
        opened: When each subflow was opened, in seconds since the run began, and its window then in packets, shape
            (n, 2); empty where another sender was observed, or an older version recorded none.
    """

    path: str
    throughput_bps: Array
    cwnd_packets: Array
    srtt_s: Array
    disabled_s: Array = field(default_factory=lambda: np.empty((0, 2)))
    capacity_bps: Array = field(default_factory=lambda: np.empty(0))
    opened: Array = field(default_factory=lambda: np.empty((0, 2)))

    def __post_init__(self) -> None:
        """Fills in the capacity where it is not known."""
        if not len(self.capacity_bps):
            object.__setattr__(self, "capacity_bps", np.full(len(self.throughput_bps), np.nan))

    def usable(self, times_s: Array, windows: Array) -> Array:
        """Windows of the path at some instants, zero where the path policy forbade new data on it."""
        usable = windows.copy()
        for begin, end in self.disabled_s.tolist():
            usable[(times_s >= begin) & (times_s < end) & ~np.isnan(windows)] = 0.0
        return usable


@dataclass(frozen=True, slots=True)
class Shown:
    """A representation of a DASH video on screen.

    Attributes:
        begin_s: When it came on screen, in seconds since the run began.
        end_s: When another one took its place, or the session ended; the picture may have been frozen meanwhile.
        bitrate_bps: Its nominal bitrate.
        resolution: Width and height, such as ``1280x720``; empty if not known.
    """

    begin_s: float
    end_s: float
    bitrate_bps: float
    resolution: str


@dataclass(frozen=True, slots=True)
class NoteSeries:
    """Numbers that an algorithm emitted under one name (``ctx.emit``) about one path, or about the whole connection.

    Attributes:
        name: The name that they were emitted under.
        path: The path that they are about; absent if they are about none.
        times_s: When each was emitted, in seconds since the run began.
        values: The numbers, in the unit that their author gave them.
    """

    name: str
    path: str | None
    times_s: Array
    values: Array


@dataclass(frozen=True, slots=True)
class SessionRecording:
    """One viewer's session, sampled.

    Attributes:
        name: What the session is called, such as ``session 0``.
        times_s: The instants of the samples, in seconds since the run began.
        paths: The session's paths, that of the initial subflow first.
        buffer_s: Playing time ahead of the viewer in seconds; not a number where the player has no buffer.
        discards: Pictures discarded since the previous sample.
        path_switches: Path switches since the previous sample.
        stalls_s: Beginning and end of each stall, shape (n, 2).
        underflows_s: The instants of the buffer underflows.
        shown: What was on screen, of a DASH video, in order.
        notes: What algorithms emitted, by name and path.
    """

    name: str
    times_s: Array
    paths: tuple[PathRecording, ...]
    buffer_s: Array
    discards: Array
    path_switches: Array
    stalls_s: Array
    underflows_s: Array
    shown: tuple[Shown, ...] = ()
    notes: tuple[NoteSeries, ...] = ()

    @property
    def plays(self) -> bool:
        """Whether something is played, rather than only downloaded."""
        return not bool(np.isnan(self.buffer_s).all())

    @property
    def total_window_packets(self) -> Array:
        """The sum of the windows of those paths that may carry new data; not a number while none has a window."""
        windows = np.stack([path.usable(self.times_s, path.cwnd_packets) for path in self.paths])
        total: Array = np.nansum(windows, axis=0)
        total[np.isnan(windows).all(axis=0)] = np.nan
        return total

    @property
    def interval_s(self) -> float:
        """Seconds between two samples; zero where there is only one."""
        return float(self.times_s[1] - self.times_s[0]) if len(self.times_s) > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that the scenario had happen to the network.

    Attributes:
        at_s: When, in seconds since the run began.
        text: What, in a few words.
    """

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Recording:
    """A run over time.

    Attributes:
        sessions: The first sessions of the run; those of a crowd are not all recorded.
        marks: What the scenario had happen.
    """

    sessions: tuple[SessionRecording, ...]
    marks: tuple[Mark, ...]


def of_outcome(outcome: _core.Outcome) -> Recording:
    """The recording of a run that has just ended."""
    sessions = []
    for columns in outcome.sessions():
        paths = [
            PathRecording(
                path=path["path"],
                throughput_bps=path["throughput_bps"].astype(np.float64),
                cwnd_packets=path["cwnd_packets"].astype(np.float64),
                srtt_s=path["srtt_s"].astype(np.float64),
                disabled_s=path["disabled"].reshape(-1, 2),
                capacity_bps=path["capacity_bps"].astype(np.float64),
                opened=path["opened"].reshape(-1, 2),
            )
            for path in columns["paths"]
        ]
        sessions.append(
            SessionRecording(
                name=columns["name"],
                times_s=columns["time_s"],
                paths=tuple(paths),
                buffer_s=columns["buffer_s"].astype(np.float64),
                discards=columns["discards"].astype(np.float64),
                path_switches=columns["path_switches"].astype(np.float64),
                stalls_s=columns["stalls"].reshape(-1, 2),
                underflows_s=columns["underflows"],
                shown=tuple(
                    Shown(begin, end, bitrate, f"{width:.0f}x{height:.0f}" if width else "")
                    for begin, end, bitrate, width, height in columns["shown"].reshape(-1, 5).tolist()
                ),
                notes=tuple(NoteSeries(*series) for series in columns["notes"]),
            )
        )
    return Recording(tuple(sessions), tuple(Mark(at, text) for at, text in outcome.marks()))


_PER_PATH = ("throughput_bps", "cwnd_packets", "srtt_s", "capacity_bps")


def samples_frame(recording: Recording) -> pl.DataFrame:
    """The samples as a table: one row per session and instant, the columns of each path under ``<path>.<column>``."""
    import polars as pl

    frames = []
    for session in recording.sessions:
        columns: dict[str, Any] = {
            "time_s": session.times_s,
            "buffer_s": session.buffer_s,
            "discards": session.discards.astype(np.uint32),
            "path_switches": session.path_switches.astype(np.uint32),
        }
        for path in session.paths:
            columns |= {f"{path.path}.{name}": getattr(path, name) for name in _PER_PATH}
        frames.append(pl.DataFrame(columns).select(pl.lit(session.name).alias("session"), pl.all()))
    if not frames:
        return pl.DataFrame(schema={"session": pl.String, "time_s": pl.Float64})
    # Sessions over other paths have other columns; a column that a session lacks is null, one without a value is NaN.
    return pl.concat(frames, how="diagonal")


def incidents_frame(recording: Recording) -> pl.DataFrame:
    """What happened, as a table: one row each, with its beginning and end.

    The kinds: ``stall``, ``underflow``, ``scenario`` (``text``: what happened to the network), ``disabled`` (``text``:
    the path that the policy forbade), ``opened`` (``text``: the path of a new subflow, ``value``: its window in
    packets), ``shown`` (``text``: the resolution on screen, ``value``: its bitrate in bit/s).
    """
    import polars as pl

    rows: list[tuple[str | None, str, float, float, str | None, float | None]] = []
    for session in recording.sessions:
        rows += [(session.name, "stall", begin, end, None, None) for begin, end in session.stalls_s.tolist()]
        rows += [(session.name, "underflow", at, at, None, None) for at in session.underflows_s.tolist()]
        for path in session.paths:
            rows += [(session.name, "disabled", begin, end, path.path, None) for begin, end in path.disabled_s.tolist()]
            rows += [(session.name, "opened", at, at, path.path, window) for at, window in path.opened.tolist()]
        rows += [(session.name, "shown", s.begin_s, s.end_s, s.resolution, s.bitrate_bps) for s in session.shown]
    rows += [(None, "scenario", mark.at_s, mark.at_s, mark.text, None) for mark in recording.marks]
    schema = {
        "session": pl.String,
        "kind": pl.String,
        "begin_s": pl.Float64,
        "end_s": pl.Float64,
        "text": pl.String,
        "value": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def notes_frame(recording: Recording) -> pl.DataFrame:
    """What algorithms emitted, as a table: one row per number, by session, name and path, oldest first in each."""
    import polars as pl

    columns = {"session": pl.String, "name": pl.String, "path": pl.String, "time_s": pl.Float64, "value": pl.Float64}
    frames = [pl.DataFrame(schema=columns)]
    for session in recording.sessions:
        for series in session.notes:
            numbers = pl.DataFrame({"time_s": series.times_s, "value": series.values})
            texts = {"session": session.name, "name": series.name, "path": series.path}
            texts_first = [pl.lit(text, pl.String).alias(column) for column, text in texts.items()]
            frames.append(numbers.select(*texts_first, pl.all()))
    return pl.concat(frames)


def _notes(rows: pl.DataFrame) -> tuple[NoteSeries, ...]:
    """The series of one session that the rows were made of."""
    return tuple(
        NoteSeries(str(name), path if path is None else str(path), own["time_s"].to_numpy(), own["value"].to_numpy())
        for (name, path), own in rows.group_by("name", "path", maintain_order=True)
    )


def of_frames(samples: pl.DataFrame, incidents: pl.DataFrame, notes: pl.DataFrame | None = None) -> Recording:
    """The recording that the tables were made of; where no algorithm emitted anything, there is no table of notes."""
    import polars as pl

    sessions = []
    for (name,), rows in samples.group_by("session", maintain_order=True):
        own = incidents.filter(pl.col("session") == name)
        stalls = _pairs(own.filter(pl.col("kind") == "stall"), "begin_s", "end_s")
        disabled, opened = (own.filter(pl.col("kind") == kind) for kind in ("disabled", "opened"))
        shown = own.filter(pl.col("kind") == "shown").select("begin_s", "end_s", "value", "text")
        suffix = f".{_PER_PATH[0]}"
        names = [c.removesuffix(suffix) for c in rows.columns if c.endswith(suffix) and rows[c].null_count() == 0]
        sessions.append(
            SessionRecording(
                name=str(name),
                times_s=rows["time_s"].to_numpy(),
                paths=tuple(
                    PathRecording(
                        p,
                        # Run folders of older versions lack the capacity.
                        **{c: rows[f"{p}.{c}"].to_numpy() for c in _PER_PATH if f"{p}.{c}" in rows.columns},
                        disabled_s=_pairs(disabled.filter(pl.col("text") == p), "begin_s", "end_s"),
                        opened=_pairs(opened.filter(pl.col("text") == p), "begin_s", "value"),
                    )
                    for p in names
                ),
                buffer_s=rows["buffer_s"].to_numpy(),
                discards=rows["discards"].to_numpy().astype(np.float64),
                path_switches=rows["path_switches"].to_numpy().astype(np.float64),
                stalls_s=stalls,
                shown=tuple(Shown(*row) for row in shown.rows()),
                underflows_s=own.filter(pl.col("kind") == "underflow")["begin_s"].to_numpy(),
                notes=() if notes is None else _notes(notes.filter(pl.col("session") == name)),
            )
        )
    marks = incidents.filter(pl.col("kind") == "scenario").select("begin_s", "text").rows()
    return Recording(tuple(sessions), tuple(Mark(at, text) for at, text in marks))


def _pairs(rows: pl.DataFrame, *columns: str) -> Array:
    """Two columns, such as beginnings and ends, as an array."""
    pairs: Array = rows.select(columns).to_numpy().reshape(-1, 2)
    return pairs
