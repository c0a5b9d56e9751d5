"""The numbers of a run as rows: one per session, and one per media segment.

Columns are the keys of ``metrics.json``, dotted.

What belongs to the run as a whole is in every row of it: ``run.*``, ``links.NAME.DIRECTION.*``, ``fairness.*`` and
``traffic.N.*``, and of runs in real time ``live.*``. The subflows of a path are one: ``subflows.PATH.*`` are sums of
counts and rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Value = str | int | float | bool | None
Row = dict[str, Value]

SEGMENTS = "media_segments"
"""The list of a session that makes the rows of the second table."""

DOWNLOADS = "download_s"
"""The times of a session's downloads, which criteria of papers may ask for."""

TRIES = "live.tries"
"""How often a run in real time was made until it was valid."""

OF_LIVE = (TRIES, "live.kernel", *(f"live.lateness_s.{quantile}" for quantile in ("p50", "p99", "p999", "max")))
"""What tables have of runs in real time only."""

_OF_RUN = ("ended", "sim_seconds", "packets", "seed_matters")
_LISTS = (SEGMENTS, "downloads", "subflows", "statistics_window_s")
_OF_TRAFFIC = ("bytes", "goodput_bps")
_SUBFLOW_LISTS = ("disabled_spans_s", "retransmissions_around_events")
# A mean of means would need the time of each.
_MEANS = ("mean_cwnd_packets", "mean_srtt_s")


def sessions(metrics: Mapping[str, Any], reduced: Sequence[Row] = ()) -> Iterator[Row]:
    """A row per session of a run, with the numbers of reducers."""
    whole = _of_run(metrics)
    for number, session in enumerate(metrics["sessions"]):
        more = reduced[number] if reduced else {}
        yield {"session": number, **_of_session(session), **more, **whole}


def segments(metrics: Mapping[str, Any]) -> Iterator[Row]:
    """A row per media segment of a run."""
    for number, session in enumerate(metrics["sessions"]):
        for segment in session.get(SEGMENTS) or ():
            yield {"session": number, **segment}


def download_times_s(session: Mapping[str, Any]) -> list[float]:
    """The times of the downloads of a session that arrived, from the request to the last byte."""
    whole = [each for each in session["downloads"] if None not in (each["requested_s"], each["finished_s"])]
    return [each["finished_s"] - each["requested_s"] for each in whole]


def _of_session(session: Mapping[str, Any]) -> Row:
    row: Row = {}
    for key, value in session.items():
        if key not in _LISTS:
            _flatten("session_name" if key == "name" else key, value, row)
    for path, subflows in _by_path(session["subflows"]).items():
        for key in subflows[0]:
            if key != "path" and key not in _SUBFLOW_LISTS:
                _flatten(f"subflows.{path}.{key}", _together(key, [subflow[key] for subflow in subflows]), row)
    return row


def _by_path(subflows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for subflow in subflows:
        found.setdefault(subflow["path"], []).append(subflow)
    return found


def _together(key: str, values: Sequence[Any]) -> Any:
    """The value of a path whose subflows have these."""
    if len(values) == 1 or isinstance(values[0], bool):
        return values[0]
    if key in _MEANS or any(value is None for value in values):
        return None
    if isinstance(values[0], dict):
        return {name: sum(value.get(name, 0) for value in values) for name in values[0]}
    return sum(values)


def _of_run(metrics: Mapping[str, Any]) -> Row:
    row: Row = {f"run.{key}": metrics[key] for key in _OF_RUN}
    for link in metrics["links"]:
        for key, value in link.items():
            if key not in ("name", "direction"):
                _flatten(f"links.{link['name']}.{link['direction']}.{key}", value, row)
    _flatten("fairness", metrics["fairness"], row)
    if live := metrics.get("live"):
        row["live.kernel"] = live["kernel"]
        _flatten("live.lateness_s", live["lateness_s"], row)
    for number, flow in enumerate(metrics["traffic"]):
        row |= {f"traffic.{number}.{key}": flow[key] for key in _OF_TRAFFIC}
    return row


def _flatten(name: str, value: Any, row: Row) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{name}.{key}", inner, row)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            _flatten(f"{name}.{position}", inner, row)
    else:
        row[name] = value


def known(measured: Mapping[str, Any], paths: Sequence[str]) -> Names:
    """The names of columns that a scenario has, from what was measured of a run that was stopped at once."""
    from anabranch.results.metrics import SubflowReport

    outline = measured["metrics"]
    names = dict.fromkeys(key for row in sessions(outline, measured.get("reduced", ())) for key in row)
    names |= dict.fromkeys(
        f"subflows.{path}.{key}"
        for path in paths
        for key in SubflowReport.__annotations__
        if key not in ("path", *_SUBFLOW_LISTS)
    )
    first = outline["sessions"][0] if outline["sessions"] else {}
    opened = [key for key, value in first.items() if value in (None, []) and key in _OPENED]
    return Names(tuple(names), tuple(opened))


# Their inner keys are there only once there is something to count.
_OPENED = ("total_window", "switch_forecasts", "retransmissions_around_events")


class Names:
    """Names of columns, and keys below which there may be more."""

    def __init__(self, names: Sequence[str], opened: Sequence[str] = ()) -> None:
        self.names = tuple(names)
        self._opened = tuple(opened)

    def __contains__(self, name: str) -> bool:
        return name in self.names or name.partition(".")[0] in self._opened
