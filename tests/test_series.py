"""A session in intervals, as figures and pages draw it."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anabranch
from anabranch import figures
from anabranch.figures.comparison import Column
from anabranch.report import timelines
from anabranch.results import series
from anabranch.results.recording import Array, PathRecording, SessionRecording
from anabranch.runs import runfolder

SAMPLE_S = 0.1


def path(name: str, window: Array, throughput_bps: float = 1e6) -> PathRecording:
    known = np.where(np.isnan(window), np.nan, 1.0)
    return PathRecording(name, throughput_bps * known, window, 0.05 * known)


def session(samples: int, *paths: PathRecording) -> SessionRecording:
    nothing = np.zeros(samples)
    return SessionRecording(
        name="session 0",
        times_s=np.arange(1.0, samples + 1.0, dtype=np.float64) * SAMPLE_S,
        paths=paths or (path("wifi", np.full(samples, 10.0)),),
        buffer_s=np.full(samples, np.nan),
        discards=nothing,
        path_switches=nothing,
        stalls_s=np.empty((0, 2)),
        underflows_s=np.empty(0),
    )


def since(begin: int, samples: int) -> Array:
    """A window that grows by a packet per sample, from a sample on."""
    window = np.arange(samples, dtype=np.float64)
    window[:begin] = np.nan
    return window


@pytest.mark.parametrize(
    ("duration_s", "width_s", "averaged_s"),
    [(2, 0.1, 0.1), (10, 0.1, 0.5), (40, 0.1, 1.1), (60, 0.2, 1.0), (200, 0.5, 1.5), (400, 1, 1), (600, 2, 2)],
)
def test_intervals_follow_the_duration(duration_s: float, width_s: float, averaged_s: float) -> None:
    found = series.of_session(session(round(duration_s / SAMPLE_S)))
    assert found.width_s == pytest.approx(width_s)
    assert found.averaged_s == pytest.approx(averaged_s)
    assert len(found.middles_s) == round(duration_s / width_s)
    assert found.middles_s[0] == pytest.approx(width_s / 2.0)


@pytest.mark.parametrize("samples", [1, 2, 399, 400, 401, 801, 4001, 123_456])
def test_there_are_enough_intervals_and_never_too_many(samples: int) -> None:
    for most in (series.MOST_INTERVALS, series.NARROW_INTERVALS):
        intervals = len(series.of_session(session(samples), most=most).middles_s)
        # The next shorter interval of 1, 2, 5, ... is at most 2.5 times as short.
        assert min(samples, most / 2.5) <= intervals <= most


def test_sessions_next_to_each_other_have_the_same_intervals() -> None:
    short, long = (session(samples) for samples in (300, 6000))
    figure = figures.compare([Column("a", "", each) for each in (short, long)], title="")
    lines = [line for axes in figure.axes for line in axes.lines if line.get_gid() == "throughput-wifi"]
    widths = [np.diff(np.asarray(line.get_xdata(), dtype=np.float64)) for line in lines]
    assert [len(each) for each in widths] == [5, 119]
    np.testing.assert_allclose(np.concatenate(widths), 5.0)


@pytest.mark.parametrize("samples", [100, 6000])
def test_lines_of_windows_begin_with_the_first_sample_of_their_subflow(samples: int) -> None:
    late = samples // 2 + 1
    found = series.of_session(session(samples, path("wifi", since(0, samples)), path("lte", since(late, samples))))
    for number, begin in ((0, 0), (1, late)):
        for line in (*found.paths[number].window_packets, found.paths[number].srtt_s):
            first = np.flatnonzero(~np.isnan(line))[0]
            assert found.state_times_s[first] == pytest.approx((begin + 1) * SAMPLE_S)
        assert found.paths[number].window_packets[0][first] == begin
    # A window that grows steadily is a straight line, whatever begins at the same time.
    wifi = found.paths[0].window_packets[0]
    expected = found.state_times_s / SAMPLE_S - 1.0
    np.testing.assert_allclose(wifi[~np.isnan(wifi)], expected[~np.isnan(wifi)])
    assert found.total_window_packets[0] == 0.0


@pytest.mark.parametrize("samples", [100, 6000])
def test_lines_of_windows_begin_with_the_initial_window_when_their_subflow_is_opened(samples: int) -> None:
    late = samples // 2 + 1
    # The second subflow of WiFi adds nothing: its window is not the one that is drawn.
    opened = {"wifi": [[0.03, 4.0], [0.06, 4.0]], "lte": [[(late + 0.4) * SAMPLE_S, 10.0]]}
    wifi, lte = (
        dataclasses.replace(path(name, window), opened=np.array(opened[name]))
        for name, window in (
            ("wifi", np.full(samples, 20.0)),
            ("lte", np.where(np.arange(samples) < late, np.nan, 30.0)),
        )
    )
    found = series.of_session(session(samples, wifi, lte))
    for number, (begin_s, window, sampled) in enumerate(((0.03, 4.0, 20.0), ((late + 0.4) * SAMPLE_S, 10.0, 30.0))):
        for line in found.paths[number].window_packets:
            first = np.flatnonzero(~np.isnan(line))[0]
            assert found.state_times_s[first] == pytest.approx(begin_s)
            assert line[first] == window
            # From the first sample on, the line is as without an opening.
            assert set(line[first + 1 :].tolist()) == {sampled}
        # A round trip is known from the first sample on.
        known = found.state_times_s[~np.isnan(found.paths[number].srtt_s)]
        assert known[0] == pytest.approx(math.ceil(begin_s / SAMPLE_S) * SAMPLE_S)
    at = {
        float(np.round(at, 3)): total for at, total in zip(found.state_times_s, found.total_window_packets, strict=True)
    }
    assert (at[0.03], at[round((late + 0.4) * SAMPLE_S, 3)]) == (4.0, 30.0)


def test_a_subflow_that_is_closed_before_its_first_sample_is_not_drawn() -> None:
    wifi = dataclasses.replace(path("wifi", np.full(100, np.nan)), opened=np.array([[0.03, 10.0]]))
    found = series.of_session(session(100, wifi))
    assert np.isnan(found.paths[0].window_packets[0]).all()


def test_the_window_of_a_run_begins_at_its_opening_also_from_its_folder(tmp_path: Path) -> None:
    run = anabranch.run("sticky/base", set={"duration": "20 s", "transport.initial_window": 7}, events=True)
    opened = run.events.filter((pl.col("event") == "subflow-opened") & (pl.col("source") == "session 0/server")).select(
        "path", "time_s"
    )
    assert opened.height == 3
    run.save(tmp_path / "run")
    kept = runfolder.read(tmp_path / "run").recording.sessions[0]
    for recorded in (run.recording.sessions[0], kept):
        found = series.of_session(recorded)
        for name, at in opened.rows():
            line = next(each.window_packets[0] for each in found.paths if each.name == name)
            first = np.flatnonzero(~np.isnan(line))[0]
            assert (found.state_times_s[first], line[first]) == (at, 7.0)


def test_a_subflow_that_comes_back_begins_again_and_is_absent_in_between() -> None:
    window = np.full(6000, 20.0)
    window[1003:4001] = np.nan
    found = series.of_session(session(6000, path("wifi", window)))
    line = found.paths[0].window_packets[0]
    again = found.state_times_s[~np.isnan(line) & (found.state_times_s > 200.0)][0]
    assert again == pytest.approx(400.2)
    assert np.isnan(line[(found.state_times_s > 102.0) & (found.state_times_s < 400.0)]).all()


def test_throughput_keeps_its_mean_and_is_absent_where_there_is_no_subflow() -> None:
    draws = np.random.default_rng(1)
    wifi = path("wifi", since(30, 100))
    bursts = np.where(np.isnan(wifi.throughput_bps), np.nan, draws.choice([0.0, 10e6], 100))
    found = series.of_session(session(100, dataclasses.replace(wifi, throughput_bps=bursts)))
    carried = found.paths[0].throughput_bps
    assert np.isnan(carried[:30]).all()
    np.testing.assert_allclose(carried[50], bursts[48:53].mean())
    np.testing.assert_allclose(carried[30], bursts[30:33].mean())
    assert np.nanstd(carried) < np.nanstd(bursts) / 1.5


def test_the_figure_and_the_page_draw_the_same_values() -> None:
    run = anabranch.run("sticky/base", set={"duration": "45 s"})
    figure = figures.draw_session(run.recording.sessions[0], title="", subtitle="")
    drawn = {line.get_gid(): line for axes in figure.axes for line in axes.lines}
    page = timelines.of_session(run.recording, run.metrics, 0, title="").data
    middles = page["first_s"] + page["width_s"] * np.arange(page["points"])
    times = {"states": page["state_times"], "intervals": middles}
    found = [
        (graph, one) for graph in page["graphs"] for one in graph["lines"] if graph["kind"] in ("window", "throughput")
    ]
    assert len(found) == 3 * 2 + 3 + 1, "throughput and capacity of each path, their windows and the sum"
    for graph, one in found:
        kind = "capacity" if one["role"] == "capacity" else graph["kind"]
        name = "total" if one["role"] == "total" else graph["path"] or one["name"]
        line, values = drawn[f"{kind}-{name}"], np.array(one["values"], dtype=np.float64)
        np.testing.assert_allclose(np.asarray(line.get_xdata(), dtype=np.float64), times[graph["times"]], atol=1e-3)
        np.testing.assert_allclose(np.asarray(line.get_ydata(), dtype=np.float64), values, rtol=1e-3, atol=1e-3)
