"""The contract of metrics.json: who reads a run folder refuses whatever is missing, renamed or no number."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import InputError
from anabranch.results import metrics
from anabranch.runs import comparison, runfolder
from anabranch.wording import summary
from conftest import Run

# Two viewers of a DASH video over two paths, one of them cut, and cross traffic: every key of a simulation is there.
SCENARIO = """\
schema = 1
duration = "14 s"
[transport]
scheduler = "min-rtt"
congestion_control = "cubic"
[link.wifi]
rtt = "30 ms"
rate = "3 Mb/s"
loss = "1 %"
[link.lte]
rtt = "60 ms"
rate = "2 Mb/s"
[[session]]
video = { kind = "dash", ladder = "bbb-6s", duration = "12 s" }
player = "dash.js-5"
count = 2
[[traffic]]
kind = "tcp"
path = "wifi"
size = "100 kB"
[[event]]
at = "2 s"
link = "wifi"
rate = "1 Mb/s"
"""

Place = tuple[str | int, ...]

# A control that counts nothing has no keys there; any name is a key.
_FREE = ("control_counts",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("metrics")
    (directory / "two.toml").write_text(SCENARIO, encoding="utf-8")
    return anabranch.run(directory / "two.toml").save(directory / "run")


def _members(tree: Any, at: Place = ()) -> Iterator[Place]:
    """Every member of every object."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        if isinstance(tree, dict):
            yield (*at, key)
        if key not in _FREE:
            yield from _members(value, (*at, key))


def _changed(whole: dict[str, Any], place: Place, change: Callable[[dict[str, Any], str], object]) -> str:
    tree: Any = copy.deepcopy(whole)
    parent = tree
    for key in place[:-1]:
        parent = parent[key]
    change(parent, str(place[-1]))
    return json.dumps(tree)


def _remove(parent: dict[str, Any], key: str) -> None:
    del parent[key]


def _rename(parent: dict[str, Any], key: str) -> None:
    parent[key + "_"] = parent.pop(key)


def _make_nan(parent: dict[str, Any], key: str) -> None:
    parent[key] = float("nan")


def _make_text(parent: dict[str, Any], key: str) -> None:
    parent[key] = "seven" if not isinstance(parent[key], str) else 7


def test_each_metric_that_is_missing_renamed_or_no_number_is_refused(folder: Path, tmp_path: Path) -> None:
    whole = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    file = tmp_path / "metrics.json"
    places = list(_members(whole))
    assert len(places) > 200
    for place in places:
        for change in (_remove, _rename, _make_nan, _make_text):
            file.write_text(_changed(whole, place, change), encoding="utf-8")
            with pytest.raises(InputError) as refused:
                metrics.read(file)
            said = str(refused.value)
            assert str(file) in said, (place, change.__name__)
            assert str(place[-1]) in said, (place, change.__name__, said)


def test_a_folder_with_such_metrics_is_neither_read_nor_compared(folder: Path, anabranch: Run) -> None:
    file = folder / "metrics.json"
    whole = file.read_text(encoding="utf-8")
    assert runfolder.read(folder).metrics == json.loads(whole)
    try:
        file.write_text(whole.replace('"stall_s"', '"stalled_s"'), encoding="utf-8")
        with pytest.raises(InputError, match="stall_s"):
            runfolder.read(folder)
        done = anabranch("compare", folder, folder)
        assert done.returncode == 2
        assert "metrics.json" in done.stderr
        assert "stall_s" in done.stderr
    finally:
        file.write_text(whole, encoding="utf-8")


def test_each_number_of_the_reordering_delay_says_what_it_is(folder: Path) -> None:
    session = metrics.read(folder / "metrics.json")["sessions"][0]
    session["reorder_delay_s"].update({"mean": 0.0101, "p95": 0.0548, "max": 1.26})
    said = "reordering delay: mean 10.1 ms, up to 54.8 ms for 95 % of the bytes, longest 1.3 s"
    assert summary.reordering(session) == said
    # A mean above the 95th percentile is one of few long waits.
    session["reorder_delay_s"].update({"mean": 0.0011, "p95": 0.0})
    assert summary.reordering(session) == "reordering delay: mean 1.1 ms, none for 95 % of the bytes, longest 1.3 s"
    session["reorder_delay_s"].update({"mean": 0.0, "p95": 0.0, "max": 0.0})
    assert not summary.reordering(session)


def test_chunks_have_their_median_and_the_time_of_nine_tenths(folder: Path) -> None:
    session = metrics.read(folder / "metrics.json")["sessions"][0]
    assert not summary.chunks(session), "a video has no downloads"
    times = [0.9, 0.1, 0.3, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 12.0]
    every = [{"requested_s": 1.0, "first_byte_s": 1.1, "finished_s": 1.0 + time, "bytes": 10} for time in times]
    found = session["downloads"] = [metrics.DownloadReport(each) for each in every]
    assert summary.chunks(session) == "10 chunks: median 500 ms, up to 900 ms for 90 % of them, longest 12.0 s"
    assert [texts([session]) for _, texts in comparison._CHUNKS] == [["500"], ["900"]]
    found.append(metrics.DownloadReport({**every[0], "finished_s": None}))
    assert summary.chunks(session).startswith("10 of 11 chunks: median 500 ms, ")
    # The time of one download is no distribution.
    session["downloads"] = found[:1]
    assert not summary.chunks(session)


def test_what_was_not_observed_is_a_dash_and_never_zero(folder: Path, tmp_path: Path) -> None:
    whole = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    session = whole["sessions"][0]
    viewer = metrics.Viewer.__annotations__.keys() | metrics.Quality.__annotations__.keys()
    for key in (*viewer, "path_switches", "path_switches_new_data", "reorder_bytes_max"):
        session[key] = None
    session["reorder_delay_s"] = dict.fromkeys(session["reorder_delay_s"])
    for subflow in session["subflows"]:
        subflow["reinjections"] = None
    file = tmp_path / "metrics.json"
    file.write_text(json.dumps(whole), encoding="utf-8")
    read = metrics.read(file)["sessions"][0]
    assert (metrics.viewer_of(read), metrics.quality_of(read)) == (None, None)
    assert (summary.playback(read), summary.quality(read)) == ("", "")
    assert "switch" not in summary.transfer(read)
    assert not summary.reordering(read)
    # Nothing of these rows but the goodput is known.
    shown = comparison._PLAYBACK + comparison._DECODED + comparison._QUALITY + comparison._TRANSFER
    known = {label for label, texts in shown if texts([read]) != ["-"]}
    assert known == {"goodput, Mb/s"}


def test_half_of_what_a_viewer_saw_is_refused(folder: Path, tmp_path: Path) -> None:
    whole = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    whole["sessions"][0]["stalls"] = None
    (tmp_path / "metrics.json").write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(InputError, match="stalls"):
        metrics.read(tmp_path / "metrics.json")


def test_every_key_is_explained_in_the_reference(folder: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    words = {word for code in re.findall(r"`([^`\n]+)`", page) for word in re.findall(r"\w+", code)}
    whole = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    bulk = anabranch.run("bulk/one-path", set={"duration": "2 s"}).metrics
    keys = {str(place[-1]) for tree in (whole, bulk) for place in _members(tree)}
    assert "requested_s" in keys
    assert keys - words == set()
