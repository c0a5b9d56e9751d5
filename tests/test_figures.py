import dataclasses
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from anabranch.figures import compare, draw_session, style
from anabranch.figures.comparison import Column
from anabranch.figures.style import _spread
from anabranch.recording import Mark, PathRecording, SessionRecording, Shown


def session(samples: int = 600, paths: int = 2, plays: bool = True, stalls: int = 3) -> SessionRecording:
    times = np.arange(1, samples + 1, dtype=np.float64) * 0.1
    draws = np.random.default_rng(1)
    carriers = [
        PathRecording(f"path{i}", draws.uniform(0, 2e6, samples), draws.uniform(1, 40, samples), np.full(samples, 0.05))
        for i in range(paths)
    ]
    begins = np.linspace(1, 50, stalls)
    return SessionRecording(
        name="session 0",
        times_s=times,
        paths=tuple(carriers),
        buffer_s=draws.uniform(0, 5, samples) if plays else np.full(samples, np.nan),
        discards=draws.poisson(0.1, samples).astype(float),
        path_switches=draws.poisson(10, samples).astype(float),
        stalls_s=np.stack([begins, begins + 0.5], axis=1),
        underflows_s=begins,
    )


def streamed(samples: int = 600) -> SessionRecording:
    """A DASH session whose second path is forbidden from 20 s to 40 s."""
    plain = session(samples)
    shown = (Shown(2.0, 30.0, 5e5, "640x360"), Shown(30.0, 50.0, 2e6, "1280x720"), Shown(50.0, 60.0, 1e6, ""))
    first, second = plain.paths
    forbidden = dataclasses.replace(second, disabled_s=np.array([[20.0, 40.0]]))
    return dataclasses.replace(plain, paths=(first, forbidden), shown=shown)


def svg(recording: SessionRecording, tmp_path: Path, marks: tuple[Mark, ...] = ()) -> str:
    path = tmp_path / "figure.svg"
    style.save(draw_session(recording, title="a title", subtitle="a subtitle", marks=marks), path)
    return path.read_text(encoding="utf-8")


def test_the_figure_shows_every_series_with_its_unit(tmp_path: Path) -> None:
    text = svg(session(), tmp_path, (Mark(20.0, "wifi down"),))
    for title in ("Throughput per path (Mb/s", "Congestion window (packets)", "Playout buffer (s)", "Time (s)"):
        assert title in text
    for identifier in (
        "throughput-path0",
        "window-path1",
        "buffer",
        "underflows",
        "stalls",
        "discards",
        "path-switches",
    ):
        assert f'id="{identifier}"' in text
    for word in ("a title", "a subtitle", "wifi down", "stall", "buffer underflow", "path0", "path1"):
        assert re.search(f">{re.escape(word)}<", text), word


def test_a_dash_session_shows_its_bitrates_resolutions_and_paths(tmp_path: Path) -> None:
    text = svg(streamed(), tmp_path)
    for title in ("Bitrate on screen (Mb/s) and resolution", "Paths in use"):
        assert title in text
    for identifier in ("bitrate", "window-total", "in-use-path0", "in-use-path1"):
        assert f'id="{identifier}"' in text
    for word in ("640x360", "1280x720", "total"):
        assert re.search(f">{word}<", text), word
    assert "Discarded" not in text, "a DASH player decodes nothing"
    assert "Paths in use" not in svg(dataclasses.replace(streamed(), paths=session().paths), tmp_path)


def test_a_forbidden_path_adds_nothing_to_the_total_window() -> None:
    recording = streamed()
    first, second = (path.cwnd_packets for path in recording.paths)
    total = recording.total_window_packets
    during = (recording.times_s >= 20.0) & (recording.times_s < 40.0)
    np.testing.assert_array_equal(total[during], first[during])
    np.testing.assert_allclose(total[~during], (first + second)[~during])


def test_more_pixels_get_more_ink() -> None:
    sizes = ["", "320x240", "480x360", "854x480", "1280x720", "1920x1080"]
    inks = [style.resolution_shade(size) for size in sizes]
    assert inks == sorted(inks, reverse=True)
    assert len(set(inks)) == 5, "what is not known is as pale as the smallest"


def test_long_subtitles_are_wrapped(tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    style.save(draw_session(session(), title="t", subtitle="many words " * 20), path)
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "many words" in line and "<text" in line]
    assert len(lines) == 3


def test_a_download_has_no_playout(tmp_path: Path) -> None:
    text = svg(session(plays=False, stalls=0), tmp_path)
    assert "Playout buffer" not in text
    assert "Discarded" not in text


def test_one_path_cannot_switch(tmp_path: Path) -> None:
    assert "Path switches" not in svg(session(paths=1), tmp_path)


@pytest.mark.parametrize("samples", [1, 2, 599, 7000])
@pytest.mark.parametrize("paths", [1, 8])
def test_any_length_and_number_of_paths_can_be_drawn(samples: int, paths: int, tmp_path: Path) -> None:
    assert "Throughput" in svg(session(samples=samples, paths=paths), tmp_path)


def test_a_path_that_never_carried_anything_is_no_obstacle(tmp_path: Path) -> None:
    recording = session()
    recording.paths[1].throughput_bps[:] = np.nan
    recording.paths[1].cwnd_packets[:] = np.nan
    assert "Throughput" in svg(recording, tmp_path)


def test_the_same_recording_gives_the_same_bytes(tmp_path: Path) -> None:
    assert svg(session(), tmp_path) == svg(session(), tmp_path)


def test_columns_of_a_comparison_share_their_axes() -> None:
    figure = compare([Column("a", "", session()), Column("b", "", session(samples=300))], title="t")
    limits = [axes.get_xlim() + axes.get_ylim() for axes in figure.axes]
    left, right = limits[0::2], limits[1::2]
    assert left == right


def test_a_comparison_of_streams_shows_their_bitrates() -> None:
    figure = compare([Column("a", "", streamed()), Column("b", "", streamed(300))], title="t")
    assert any("Bitrate on screen" in axes.get_title(loc="left") for axes in figure.axes)


def test_a_comparison_needs_a_run() -> None:
    with pytest.raises(ValueError, match="at least one"):
        compare([], title="t")


@pytest.mark.parametrize("seed", range(50))
def test_labels_keep_their_distance_and_order_and_move_no_more_than_they_must(seed: int) -> None:
    draws = np.random.default_rng(seed)
    wanted = sorted(draws.uniform(0, 1, draws.integers(1, 9)).tolist())
    placed = _spread(wanted, 0.1)
    assert all(b - a >= 0.1 - 1e-9 for a, b in itertools.pairwise(placed))
    # The least sum of squares: no label alone, and no block of touching ones, gains by moving.
    blocks: list[list[int]] = [[0]]
    for i in range(1, len(placed)):
        if placed[i] - placed[i - 1] > 0.1 + 1e-9:
            blocks.append([])
        blocks[-1].append(i)
    for block in blocks:
        assert sum(placed[i] - wanted[i] for i in block) == pytest.approx(0, abs=1e-9)
