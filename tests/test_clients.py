"""What the real players say, turned into metrics; without the players."""

import json
from pathlib import Path

import numpy as np
import pytest

from anabranch import InputError
from anabranch.live.clients import dashjs, vlc, watch
from anabranch.results.recording import PathRecording, SessionRecording, Shown
from anabranch.runs.reading import load

MPD = """\
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT6S">
  <Period><AdaptationSet contentType="video">
    <Representation id="b" bandwidth="900000" width="1280" height="720">
      <SegmentTemplate timescale="1" duration="2" startNumber="1" media="b-$Number$"/>
    </Representation>
    <Representation id="a" bandwidth="300000" width="640" height="360">
      <SegmentTemplate timescale="1" duration="2" startNumber="1" media="a-$Number$"/>
    </Representation>
  </AdaptationSet></Period>
</MPD>
"""

# Two media segments in the lower representation, a stall of a second, one in the higher.
EVENTS: list[tuple[float, str, list[float]]] = [
    (0.1, "requested", [0, 0, 300_000]),
    (0.2, "first-byte", [0]),
    (0.5, "complete", [0, 75_000]),
    (0.5, "appended", [0, 300_000, 2.0]),
    (0.5, "started", []),
    (0.5, "shown", [0, 300_000]),
    (0.6, "requested", [1, 1, 300_000]),
    (0.7, "first-byte", [1]),
    (1.0, "complete", [1, 75_000]),
    (1.0, "appended", [1, 300_000, 3.5]),
    (1.1, "requested", [2, 2, 900_000]),
    (2.5, "shown", [1, 300_000]),
    (4.5, "stall-began", []),
    (5.5, "complete", [2, 225_000]),
    (5.5, "appended", [2, 900_000, 2.0]),
    (5.5, "stall-ended", []),
    (5.5, "shown", [2, 900_000]),
    (6.0, "discarded", [120]),
    (7.5, "ended", []),
]


def _log(events: list[tuple[float, str, list[float]]]) -> dashjs.Log:
    return dashjs.Log(events, samples=[], errors=[], over=True, version="5.2.1", end_s=8.0)


def test_dash_js_s_log_becomes_the_metrics_of_a_session(tmp_path: Path) -> None:
    mpd = tmp_path / "manifest.mpd"
    mpd.write_text(MPD, encoding="utf-8")
    report = json.loads(dashjs.viewed(_log(EVENTS), mpd).metrics_json)
    assert (report["startup_s"], report["stalls"], report["stall_s"], report["played_s"]) == (0.5, 1, 1.0, 6.0)
    assert report["mean_bitrate_bps"] == pytest.approx(500_000)
    assert (report["switches"], report["impactful_switches"], report["picture_discards"]) == (1, 1, 1)
    assert report["time_on_high_quality"] == pytest.approx(1 / 3)
    assert dashjs.on_screen(_log(EVENTS), mpd) == (
        Shown(0.5, 5.5, 300_000.0, "640x360"),
        Shown(5.5, 7.5, 900_000.0, "1280x720"),
    )
    segments = report["media_segments"]
    assert [(one["index"], one["representation"], one["bytes"]) for one in segments] == [
        (0, 0, 75_000),
        (1, 0, 75_000),
        (2, 1, 225_000),
    ]
    assert segments[0]["download_s"] == pytest.approx(0.4)
    assert segments[0]["first_byte_s"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        ((9.0, "shown", [0, 500_000]), "no representation of 500000"),
        ((9.0, "flew", []), 'no player event "flew"'),
        ((9.0, "complete", [7]), "a number is missing"),
        ((float("nan"), "ended", []), "no time of a session"),
        ((1.0, "ended", []), "after something later"),
        ((9.0, "discarded", [5e9]), "too large"),
    ],
)
def test_a_log_that_makes_no_sense_is_refused(
    tmp_path: Path, event: tuple[float, str, list[float]], complaint: str
) -> None:
    mpd = tmp_path / "manifest.mpd"
    mpd.write_text(MPD, encoding="utf-8")
    with pytest.raises(InputError, match=complaint):
        dashjs.viewed(_log([*EVENTS, event]), mpd)


def test_the_scenario_s_player_configures_dash_js() -> None:
    player = {
        "kind": "dash.js-5",
        "strategy": "bola",
        "buffer": "20 s",
        "buffer_at_top": "40 s",
        "initial_bitrate": "600 kb/s",
        "fast_switch": False,
        "cmcd": True,
        "max_resolution": "1280x720",
    }
    chosen = dashjs.configuration(player)
    assert chosen == {
        "settings": {
            "streaming": {
                "buffer": {
                    "bufferTimeDefault": 20.0,
                    "bufferTimeAtTopQuality": 40.0,
                    "bufferTimeAtTopQualityLongForm": 40.0,
                    "fastSwitchEnabled": False,
                },
                "abr": {
                    "initialBitrate": {"video": 600.0},
                    "rules": {"throughputRule": {"active": False}, "bolaRule": {"active": True}},
                },
                "cmcd": {"enabled": True},
            }
        },
        "largest": [1280, 720],
    }
    plain = dashjs.configuration({"kind": "dash.js-5"})
    assert plain == {"settings": {"streaming": {"buffer": {}, "abr": {}}}, "largest": []}


def test_vlc_s_words_become_the_metrics_of_a_session() -> None:
    reader = vlc.Reader()
    for at_s, text in (
        (0.1, "[0000] main input debug: EOF reached"),
        (0.3, "[0000] main input debug: Buffering 50%"),
        (1.0, "[0000] main input debug: Stream buffering done (1083 ms in 700 ms)"),
        (2.0, "| video decoded    :       40"),
        (2.0, "| frames lost      :        1"),
        (3.0, "[0000] main video output warning: picture is too late to be displayed (missing 40 ms)"),
        (3.5, "[0000] main video output debug: picture might be displayed late (missing 10 ms)"),
        (4.0, "[0000] main input error: ES_OUT_SET_(GROUP_)PCR  is called too late (pts_delay increased to 1014 ms)"),
        (4.5, "[0000] main input error: ES_OUT_SET_(GROUP_)PCR  is called too late (pts_delay increased to 1030 ms)"),
        (6.0, "[0000] main input debug: Stream buffering done (1083 ms in 1900 ms)"),
        (7.0, "[0000] main input error: ES_OUT_SET_(GROUP_)PCR  is called too late, jitter of 5500 ms ignored"),
        (8.0, "[0000] main input debug: EOF reached"),
        (9.0, "[0000] main playlist debug: dead input"),
        (9.0, "[0000] main playlist: end of playlist, exiting"),
    ):
        reader.line(at_s, text)
    log = reader.log
    log.end_s = 9.5
    report = json.loads(vlc.viewed(log).metrics_json)
    assert (report["startup_s"], report["stalls"], report["stall_s"], report["played_s"]) == (1.0, 1, 2.0, 6.0)
    assert (report["picture_discards"], report["buffer_underflows"]) == (1, 3)
    assert (log.over, log.statistics) == (True, {"video decoded": 40, "frames lost": 1})


def test_a_session_that_was_cut_off_is_not_over() -> None:
    reader = vlc.Reader()
    reader.line(1.0, "main input debug: Stream buffering done (1083 ms in 700 ms)")
    reader.cut = True
    reader.line(5.0, "main playlist debug: dead input")
    assert not reader.log.over


def test_a_session_s_figure_shows_what_the_player_saw() -> None:
    times = np.arange(0.0, 10.0, 0.5)
    nothing = np.zeros_like(times)
    path = PathRecording("wifi", nothing, nothing, nothing)
    seen = SessionRecording("session 0", times, (path,), nothing, nothing, nothing, np.empty((0, 2)), np.empty(0))
    events = [(1.0, "started", []), (2.0, "stall-began", []), (3.0, "stall-ended", []), (4.2, "discarded", [9.0])]
    events.append((5.0, "stall-began", []))
    # The player began a second after the run.
    buffer, shown = ((0.0, 0.0), (2.0, 4.0), (8.0, 4.0)), (Shown(1.0, 5.0, 3e5, "640x360"),)
    playback = watch.Playback(None, False, 101.0, tuple(events), buffer, shown)
    drawn = playback.drawn(seen, 100.0)
    assert drawn.stalls_s.tolist() == [[3.0, 4.0], [6.0, 9.5]]
    assert drawn.discards.nonzero()[0].tolist() == [11]
    assert (drawn.buffer_s[:6].tolist(), drawn.buffer_s[-1]) == ([0.0, 0.0, 0.0, 1.0, 2.0, 3.0], 0.0)
    assert drawn.shown == (Shown(2.0, 6.0, 3e5, "640x360"),)
    assert drawn.paths == seen.paths
    silent = watch.Playback(None, False, 100.0, ()).drawn(seen, 100.0)
    assert not silent.plays
    assert silent.stalls_s.shape == (0, 2)


def test_content_of_the_wrong_kind_is_refused(tmp_path: Path) -> None:
    scenario = load("sticky/base")
    with pytest.raises(InputError, match="its video is progressive"):
        watch.content_for(scenario, None, wanted="dash", progress=lambda _: None)
    for wanted, missing in (("dash", "manifest.mpd"), ("progressive", "film.mp4")):
        with pytest.raises(InputError, match=missing):
            watch.content_for(scenario, tmp_path, wanted=wanted, progress=lambda _: None)
