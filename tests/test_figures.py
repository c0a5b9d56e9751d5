import dataclasses
import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

import anabranch
from anabranch import _core, figures
from anabranch.figures import compare, draw_session, ending, labels, style
from anabranch.figures.comparison import Column
from anabranch.figures.labels import Ending
from anabranch.figures.style import _spread
from anabranch.results import recording
from anabranch.results.recording import Mark, PathRecording, SessionRecording, Shown

# At which figures are saved.
SAVED_DPI = 200.0
MOST_PIXELS = 1800


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


def texts_of(figure: Figure) -> dict[str, Bbox]:
    """The extents of all texts outside of panels' axes, in pixels of the saved figure; equal texts are numbered."""
    figure.set_dpi(SAVED_DPI)
    # One renderer for all texts.
    FigureCanvasAgg(figure)
    found = [*figure.texts, *(axes._left_title for axes in figure.axes if axes._left_title.get_text())]  # type: ignore[attr-defined]
    found += event_labels(figure)
    return {f"{text.get_text()} #{number}": text.get_window_extent() for number, text in enumerate(found)}


def event_labels(figure: Figure) -> list[Text]:
    return [text for axes in figure.axes for text in axes.texts if text.get_gid() == "event-label"]


def overlaps(extents: dict[str, Bbox]) -> list[tuple[str, str]]:
    pairs = itertools.combinations(extents.items(), 2)
    return [(a, b) for (a, first), (b, second) in pairs if first.overlaps(second)]


def panel_of(figure: Figure, gid: str) -> tuple[Axes, Line2D]:
    """The panel with the line of that identifier, and the line."""
    ((axes, line),) = [(axes, line) for axes in figure.axes for line in axes.lines if line.get_gid() == gid]
    return axes, line


def heights(line: Line2D) -> recording.Array:
    return np.asarray(line.get_ydata(), dtype=np.float64)


def svg(recorded: SessionRecording, tmp_path: Path, marks: tuple[Mark, ...] = ()) -> str:
    path = tmp_path / "figure.svg"
    style.save(draw_session(recorded, title="a title", subtitle="a subtitle", marks=marks), path)
    return path.read_text(encoding="utf-8")


def test_the_figure_shows_every_series_with_its_unit(tmp_path: Path) -> None:
    text = svg(session(), tmp_path, (Mark(20.0, "wifi down"),))
    for title in (
        "Throughput of path0 (Mb/s",
        "Throughput of path1 (Mb/s",
        "Congestion window (packets)",
        "Playout buffer (s)",
        "Time (s)",
    ):
        assert title in text
    for identifier in (
        "throughput-path0",
        "window-path1",
        "buffer",
        "underflows",
        "stalls",
        "discards",
        "switches",
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


def test_long_subtitles_are_wrapped() -> None:
    text = "mean of 20 words " * 20
    lines = style.wrapped(text, 3.0, 8.5)
    assert " ".join(lines).replace("\u00a0", " ").split() == text.split()
    assert 5 < len(lines) < 15
    assert not any(line.endswith("20") for line in lines), "a number stays with its unit"
    for figure in (
        draw_session(session(), title="t", subtitle=text),
        compare([Column("many words " * 9, text, session())] * 3, title="many words " * 20),
    ):
        extents = texts_of(figure)
        assert min(box.x0 for box in extents.values()) >= 0.0
        assert max(box.x1 for box in extents.values()) <= figure.bbox.width
        assert overlaps(extents) == []


def test_only_the_last_panel_of_a_column_has_a_time_axis_and_titles_stand_right_above_their_panels() -> None:
    alone, both = (
        draw_session(session(), title="t", subtitle=""),
        compare([Column("a", "", session())] * 2, title="t"),
    )
    for figure, columns in ((alone, 1), (both, 2)):
        drawn = [axes for axes in figure.axes if axes.get_gid() != "events"]
        below = [axes for axes in drawn if axes.xaxis.get_visible()]
        assert [axes.get_xlabel() for axes in below] == ["Time (s)"] * columns
        figure.draw_without_rendering()
        for axes in drawn:
            title = axes._left_title  # type: ignore[attr-defined]
            if title.get_text():
                above = title.get_window_extent().y0 - axes.get_window_extent().y1
                assert 3.0 < above < 8.0, "pixels"


def test_a_download_has_no_playout(tmp_path: Path) -> None:
    text = svg(session(plays=False, stalls=0), tmp_path)
    assert "Playout buffer" not in text
    assert "Discarded" not in text


def test_a_session_without_discards_has_a_panel_of_them_only_next_to_one_with_some(tmp_path: Path) -> None:
    without = dataclasses.replace(session(), discards=np.zeros(len(session().discards)))
    assert "Discarded" not in svg(without, tmp_path)
    figure = compare([Column("a", "", without), Column("b", "", session())], title="t")
    assert len(figure.axes) == 2 * 5
    assert len(compare([Column("a", "", without), Column("b", "", without)], title="t").axes) == 2 * 4


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
    # Buffer, two paths, discards, path switches.
    assert len(limits) == 2 * 5
    assert limits[:5] == limits[5:]


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


WALK = (
    Mark(10.0, "wifi ~10 \u2192 ~5 Mb/s"),
    Mark(15.0, "wifi ~5 \u2192 ~1 Mb/s"),
    Mark(20.0, "wifi cut"),
    Mark(33.0, "wifi restored, ~1 \u2192 ~5 Mb/s"),
    Mark(38.0, "wifi ~5 \u2192 ~10 Mb/s"),
)
MARKS: dict[str, tuple[Mark, ...]] = {
    "none": (),
    "one": (Mark(30.0, "wifi cut"),),
    "first and last instant": (Mark(0.0, "wifi 2 \u2192 0.5 Mb/s"), Mark(60.0, "wifi restored")),
    "one instant": tuple(Mark(30.0, f"{link} cut") for link in ("wifi", "lte", "dsl")),
    "walk": WALK,
    "every second": tuple(Mark(float(at), f"wifi {at} \u2192 {at + 1} Mb/s") for at in range(1, 60)),
    "a thousand": tuple(Mark(at * 0.06, "wifi cut") for at in range(1000)),
}


@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
@pytest.mark.parametrize("end", [None, Ending(60.0, "cut off at 60 s")], ids=["finished", "cut off"])
@pytest.mark.parametrize("columns", [1, 2, 6])
def test_no_label_of_an_event_covers_another(marks: tuple[Mark, ...], end: Ending | None, columns: int) -> None:
    recorded = session()
    figure = (
        draw_session(recorded, title="a title", subtitle="", marks=marks, ending=end)
        if columns == 1
        else compare([Column("a title", "", recorded, marks, end)] * columns, title="t")
    )
    extents = texts_of(figure)
    assert overlaps(extents) == []
    assert min(min(box.x0, box.y0) for box in extents.values()) >= 0.0
    width, height = figure.get_size_inches() * SAVED_DPI
    assert max(box.x1 for box in extents.values()) <= width
    assert max(box.y1 for box in extents.values()) <= height
    written = [text.get_text() for text in event_labels(figure)]
    assert written.count("cut off at 60 s") == (columns if end else 0)
    if len(marks) <= len(WALK):
        assert len(written) == columns * (len({mark.at_s for mark in marks}) + (end is not None))


def test_events_of_one_instant_have_one_label_and_many_events_have_numbers() -> None:
    def written(name: str) -> tuple[list[str], str]:
        figure = draw_session(session(), title="t", subtitle="", marks=MARKS[name])
        texts = " ".join(text.get_text() for text in figure.texts)
        return [text.get_text() for text in event_labels(figure)], texts.replace("\u00a0", " ")

    assert written("one instant")[0] == ["wifi cut, lte cut, dsl cut"]
    numbers, explained = written("every second")
    assert set(numbers) <= {str(number) for number in range(1, 60)}
    assert len(numbers) > 30
    assert "7 wifi 7 \u2192 8 Mb/s (7 s)" in explained
    assert re.search(r"and \d+ more( |$)", written("a thousand")[1])


@pytest.mark.parametrize("columns", range(1, 7))
def test_a_comparison_is_no_wider_than_a_screen_and_its_panels_do_not_overlap(columns: int) -> None:
    figure = compare([Column(f"run {i}", "words " * 20, session(), WALK) for i in range(columns)], title="t")
    assert figure.get_figwidth() * SAVED_DPI <= MOST_PIXELS
    panels = [axes for axes in figure.axes if axes.get_gid() != "events"]
    # Buffer, two paths, discards, path switches.
    assert len(panels) == columns * 5
    boxes = {str(number): axes.get_window_extent() for number, axes in enumerate(panels)}
    assert overlaps(boxes) == []
    assert all(box.width >= 0.25 * MOST_PIXELS / 2 for box in boxes.values())


def test_a_path_has_the_same_style_in_every_figure() -> None:
    alone, walk, both = (style.path_styles(names) for names in (["wifi"], ["lte", "wifi"], ["wifi", "lte"]))
    assert alone["wifi"] == walk["wifi"] == both["wifi"] == style.PATHS[0]
    assert walk["lte"] == both["lte"] == style.path_styles(["lte", "dsl"])["lte"] == style.PATHS[1]
    numbered = style.path_styles(["path3", "path1"])
    assert (numbered["path1"], numbered["path3"]) == (style.PATHS[0], style.PATHS[2])
    handoff = style.path_styles(["wifi1", "wifi2"])
    assert handoff["wifi1"] == style.PATHS[0]
    assert handoff["wifi2"] not in (style.PATHS[0], style.PATHS[1]), "neither the first WiFi nor LTE"
    # Names that say nothing take what is left, in the order of the scenario.
    assert list(style.path_styles(["private", "wifi", "shared"]).values()) == [style.PATHS[i] for i in (1, 0, 2)]
    assert len(set(style.path_styles([f"p{i}" for i in range(1, 7)]).values())) == 6
    assert len({path.dashes for path in style.PATHS}) == len({path.colour for path in style.PATHS}) == 6


def test_lines_have_the_style_of_their_path_and_the_scenarios_paths_decide_on_it() -> None:
    recorded = session()
    _, second = recorded.paths
    alone = dataclasses.replace(recorded, paths=(dataclasses.replace(second, path="shared"),))
    in_detail = draw_session(alone, title="t", subtitle="", paths=("private", "shared"))
    own_axis = compare([Column("a", "", alone, paths=("private", "shared"))], title="t")
    expected = style.path_styles(["private", "shared"])["shared"]
    for figure in (in_detail, own_axis):
        assert panel_of(figure, "throughput-shared")[1].get_color() == expected.colour
    assert panel_of(in_detail, "window-shared")[1].get_color() == expected.colour
    assert panel_of(draw_session(recorded, title="t", subtitle=""), "window-path1")[1].get_linestyle() == "-"
    assert panel_of(draw_session(recorded, title="t", subtitle=""), "window-path0")[1].get_linestyle() == "--"


def with_capacity(capacity_bps: float) -> SessionRecording:
    recorded = session()
    paths = [dataclasses.replace(p, capacity_bps=np.full(600, capacity_bps)) for p in recorded.paths]
    return dataclasses.replace(recorded, paths=tuple(paths))


def test_capacity_is_drawn_behind_the_throughput_of_its_path_and_cut_off_far_above_it() -> None:
    axes, line = panel_of(draw_session(with_capacity(2e6), title="t", subtitle=""), "capacity-path0")
    assert panel_of(axes.figure, "throughput-path0")[0] is axes  # type: ignore[arg-type]
    assert line.get_zorder() < panel_of(axes.figure, "throughput-path0")[1].get_zorder()  # type: ignore[arg-type]
    np.testing.assert_allclose(heights(line), 2.0)
    assert axes.get_ylim()[1] > 2.0
    far, _ = panel_of(draw_session(with_capacity(1e9), title="t", subtitle=""), "capacity-path0")
    assert far.get_ylim()[1] < 5.0
    assert "link capacity up to 1e+03" in far.get_title(loc="left")
    none, _ = panel_of(draw_session(with_capacity(np.inf), title="t", subtitle=""), "throughput-path0")
    assert [line.get_gid() for line in none.lines] == ["throughput-path0"]
    assert none.get_ylim()[1] < 5.0


NETWORK = """\
schema = 1
duration = "20 s"
[link.wifi]
rtt = "30 ms"
rate = { trace = "wifi.csv" }
[link.lte]
rtt = "60 ms"
rate = "2 Mb/s"
[[session]]
video = { kind = "bulk" }
[[event]]
at = "12 s"
link = "lte"
rate = "1 Mb/s"
[[event]]
at = "16 s"
link = "lte"
down = true
"""
TRACE_MBPS = (3.0, 1.0, 5.0, 2.0, 0.0)


def test_the_capacity_in_a_figure_is_that_of_the_trace_and_of_the_events(tmp_path: Path) -> None:
    steps = "".join(f"{at},{rate}\n" for at, rate in enumerate(TRACE_MBPS))
    (tmp_path / "wifi.csv").write_text(f"t,mbps\n{steps}", "utf-8")
    loaded = _core.load(NETWORK, name="n", directory=tmp_path, overrides=[])
    run = recording.of_outcome(_core.run(loaded, seed=1, record_events=False, progress=None))
    figure = draw_session(run.sessions[0], title="t", subtitle="", marks=run.marks)
    wifi = heights(panel_of(figure, "capacity-wifi")[1])
    # A run this short is drawn sample by sample.
    np.testing.assert_allclose(wifi, np.repeat(TRACE_MBPS * 4, 10), rtol=1e-6)
    lte = heights(panel_of(figure, "capacity-lte")[1])
    np.testing.assert_allclose(lte, [2.0] * 120 + [1.0] * 40 + [0.0] * 40)
    assert [mark.text for mark in run.marks] == ["lte 2 \u2192 1 Mb/s", "lte cut"]
    # Headers included, the throughput cannot exceed it but for what waited in the queue.
    throughput = np.nan_to_num(run.sessions[0].paths[0].throughput_bps) / 1e6
    assert np.all(np.cumsum(throughput) <= np.cumsum(wifi) + 1e-9)
    again = recording.of_frames(recording.samples_frame(run), recording.incidents_frame(run))
    for stored, path in zip(again.sessions[0].paths, run.sessions[0].paths, strict=True):
        np.testing.assert_array_equal(stored.capacity_bps, path.capacity_bps)


def test_a_run_folder_without_capacity_can_be_drawn() -> None:
    recorded = recording.Recording((session(),), ())
    frame = recording.samples_frame(recorded)
    older = frame.drop([name for name in frame.columns if name.endswith("capacity_bps")])
    again = recording.of_frames(older, recording.incidents_frame(recorded))
    assert np.isnan(again.sessions[0].paths[0].capacity_bps).all()
    draw_session(again.sessions[0], title="t", subtitle="")


def test_a_session_that_did_not_come_to_its_end_shows_how_it_ended() -> None:
    cut_off = Ending(40.0, "stuck at 40 s")
    plain, marked = (
        compare([Column("a", "", session(400), ending=end), Column("b", "", session(600))], title="t")
        for end in (None, cut_off)
    )

    def endings(figure: Figure) -> list[float]:
        lines = [line for axes in figure.axes for line in axes.lines if line.get_gid() == "ending"]
        return [float(np.asarray(line.get_xdata(), dtype=float)[0]) for line in lines]

    assert (endings(plain), endings(marked)) == ([], [40.0] * 5)
    # The rest of the column is hatched, up to the end of the other one.
    hatched = [p for axes in marked.axes for p in axes.patches if p.get_hatch()]
    assert len(hatched) == 5
    detail = draw_session(session(400), title="t", subtitle="", ending=cut_off)
    assert [text.get_text() for text in event_labels(detail)] == ["stuck at 40 s"]


@pytest.mark.parametrize(
    ("ended", "cut_off", "expected"),
    [
        ("finished", False, None),
        ("duration", True, Ending(20.0, "cut off at 20 s")),
        ("stuck", True, Ending(20.0, "stuck at 20 s")),
        ("stopped", True, Ending(20.0, "interrupted at 20 s")),
        # A session without an end, such as an endless download.
        ("duration", False, None),
    ],
)
def test_the_metrics_tell_how_a_session_ended(ended: str, cut_off: bool, expected: Ending | None) -> None:
    sessions = [{"ended": "finished", "cut_off": False}, {"ended": ended, "cut_off": cut_off}]
    metrics: Any = {"ended": ended, "sim_seconds": 20.0, "sessions": sessions}
    assert ending.of_session(metrics, 1) == expected


@pytest.mark.parametrize(
    ("video", "player", "expected"),
    [
        ({"kind": "bulk", "size": "20 MB"}, None, "cut off at 3 s"),
        ({"kind": "bulk"}, None, None),
        ({"kind": "bulk", "size": "50 kB"}, "on-off", None),
        ({"kind": "bulk", "size": "50 kB"}, None, None),
    ],
)
def test_what_has_an_end_is_cut_off_by_the_duration(
    video: dict[str, str], player: str | None, expected: str | None
) -> None:
    session = {"video": video, **({"player": player} if player else {})}
    link = {"rate": "2 Mb/s", "rtt": "40 ms"}
    run = anabranch.run({"schema": 1, "duration": "3 s", "link": {"a": link}, "session": [session]})
    found = ending.of_session(run.metrics, 0)
    assert (found.text if found else None) == expected


def test_every_session_of_a_run_is_drawn_or_the_one_that_is_wanted(scenario: Path) -> None:
    text = scenario.read_text("utf-8").replace("[[session]]", "[[session]]\ncount = 4")
    run = anabranch.run(tomllib.loads(text))
    resolved = tomllib.loads(run.scenario)

    def titles(session: int | None) -> tuple[set[str], int]:
        figure = figures.draw_run(run.recording, run.metrics, resolved, run.seed, session)
        lines = [line for axes in figure.axes for line in axes.lines if line.get_gid() == "throughput-wifi"]
        return {text.get_text() for text in figure.texts}, len(lines)

    written, lines = titles(None)
    assert {f"session {number}" for number in range(4)} <= written
    assert lines == 4
    written, lines = titles(2)
    assert "scenario, session 2 of 4" in written
    assert lines == 1


def test_of_a_crowd_the_first_sessions_are_drawn(scenario: Path) -> None:
    text = scenario.read_text("utf-8").replace("[[session]]", "[[session]]\ncount = 9")
    run = anabranch.run(tomllib.loads(text), set={"duration": "5 s"})
    figure = figures.draw_run(run.recording, run.metrics, tomllib.loads(run.scenario), run.seed)
    heads = [text.get_text() for text in figure.texts]
    assert "the first 6 of 9 sessions" in " ".join(heads).replace("\u00a0", " ")
    assert [head for head in heads if head.startswith("session ")] == [f"session {number}" for number in range(6)]
    assert len(labels.merged(run.recording.marks)) == 0, "the events lie after the end"
