"""Sequence plots and round trips per subflow, from captures of simulated runs."""

import dataclasses
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anabranch
from anabranch.figures import sequence as drawing
from anabranch.report import sequences as page
from anabranch.results import capture, sequence
from anabranch.results.sequence import KINDS, Sequences, Subflow
from anabranch.runs import plots
from conftest import Run

# Two paths, one of IPv6 and lossy, which is cut, so that its data is sent again over the other one; and cross traffic.
LOSSY = {
    "schema": 1,
    "duration": "12 s",
    "link": {
        "wifi": {"rtt": "20 ms", "rate": "3 Mb/s", "loss": "1 %"},
        "lte": {"rtt": "90 ms", "rate": "2 Mb/s", "queue": "200 packets"},
    },
    "path": {"wifi": {"links": ["wifi"], "ip": 6}, "lte": {"links": ["lte"]}},
    "session": [{"video": {"kind": "bulk", "size": "3 MB"}, "count": 2}],
    "traffic": [{"kind": "tcp", "path": "lte", "start": "1 s"}],
    "event": [{"at": "3 s", "link": "wifi", "down": True}, {"at": "5 s", "link": "wifi", "down": False}],
}


def sequences(scenario: object, folder: Path, seed: int = 4) -> tuple[anabranch.Run, Sequences]:
    run = anabranch.run(scenario, seed=seed, captures=folder, events=True)  # type: ignore[arg-type]
    return run, plots.of_captures(folder, run)


def count(subflow: Subflow, kind: str) -> int:
    return int((subflow.kinds == KINDS.index(kind)).sum())


@pytest.mark.parametrize("scenario", [LOSSY, "mobile/walk", "sticky/3p-50"], ids=["lossy", "walk", "sticky"])
def test_segments_of_each_subflow_are_those_of_the_metrics_and_of_the_events(scenario: object, tmp_path: Path) -> None:
    run, found = sequences(scenario, tmp_path)
    reported = [(n, each) for n, session in enumerate(run.metrics["sessions"]) for each in session["subflows"]]
    assert len(reported) == len(found.subflows)
    reconnects = "reconnected" in run.events["event"].cast(pl.String).to_list()
    for subflow, (session, metrics) in zip(found.subflows, reported, strict=True):
        assert (subflow.session, subflow.path) == (session, metrics["path"])
        assert len(subflow.sent_s) == metrics["segments_sent"]
        assert count(subflow, "retransmission") == metrics["retransmissions"]
        events = run.events.filter(
            pl.col("source") == f"session {session}/server",
            pl.col("event") == "segment-sent",
            pl.col("subflow") == subflow.number,
        )
        # Events number the subflows of each connection from 0.
        if not reconnects:
            np.testing.assert_allclose(events["time_s"].to_numpy(), subflow.sent_s, atol=1e-6)
            np.testing.assert_array_equal(events["offset"].to_numpy(), subflow.data_begins)
            np.testing.assert_array_equal(events["bytes"].to_numpy(), subflow.ends - subflow.begins)
    assert reconnects == (scenario == "mobile/walk")


def test_acknowledgments_never_pass_what_was_sent_and_sacks_lie_above_them(tmp_path: Path) -> None:
    _, found = sequences(LOSSY, tmp_path)
    for subflow in found.subflows:
        sent = np.maximum.accumulate(subflow.ends)
        before = np.searchsorted(subflow.sent_s, subflow.acknowledged_s, side="right")
        # The last one acknowledges the FIN, too, which has a sequence number of its own.
        assert np.all(subflow.acknowledged <= sent[before - 1] + (np.arange(len(before)) == len(before) - 1))
        assert np.all(np.diff(subflow.acknowledged) >= 0)
        at = np.searchsorted(subflow.acknowledged_s, subflow.sacked_s, side="right") - 1
        assert np.all(subflow.sacked[:, 1] > subflow.acknowledged[at])
        assert np.all(subflow.sacked[:, 0] < subflow.sacked[:, 1])
    assert sum(len(subflow.sacked_s) for subflow in found.subflows) > 20
    for data in found.data:
        own = [subflow for subflow in found.subflows if subflow.session == data.session]
        sent_up_to = max(int((each.data_begins + each.ends - each.begins).max()) for each in own)
        # So has the DATA_FIN.
        assert 0.5 * sent_up_to < data.acknowledged[-1] <= sent_up_to + 1


def test_the_shortest_round_trip_is_that_of_the_links_and_the_mean_that_of_the_sender(tmp_path: Path) -> None:
    run, found = sequences(LOSSY, tmp_path)
    for subflow in found.subflows:
        shortest = {"wifi": 0.020, "lte": 0.090}[subflow.path]
        assert shortest < subflow.rtts_s[:, 1].min() < shortest + 0.030
        metrics = run.metrics["sessions"][subflow.session]["subflows"][subflow.number]
        assert subflow.rtts_s[:, 1].mean() == pytest.approx(metrics["mean_srtt_s"], rel=0.25)


def test_retransmitted_segments_give_no_round_trip_and_sacked_ones_do() -> None:
    times, begins = np.array([0.0, 0.1, 0.2, 0.5]), np.array([0, 10, 20, 0])
    acks = np.array([0.6]), np.array([30])
    sacks = np.array([0.3, 0.35]), np.array([[10, 20], [20, 30]])
    found = sequence._rtts((times, begins, begins + 10), acks, sacks)
    np.testing.assert_allclose(found, [[0.3, 0.2], [0.35, 0.15]])


def test_numbers_go_on_where_32_bits_end() -> None:
    true = np.array([0, 1 << 31, (1 << 32) - 5, (1 << 32) + 7, (1 << 33) - 100, 1 << 33]) // 3
    first = 4_000_000_000
    np.testing.assert_array_equal(capture.unwrapped((true + first) % (1 << 32), first), true)


def test_the_table_keeps_everything(tmp_path: Path) -> None:
    _, found = sequences(LOSSY, tmp_path)
    table = sequence.frame(found)
    again = sequence.of_frame(table)
    for kept, made in zip(again.subflows + again.data, found.subflows + found.data, strict=True):
        for each in dataclasses.fields(made):
            np.testing.assert_array_equal(getattr(kept, each.name), getattr(made, each.name))
    assert {"segment", "retransmission", "copy", "sack", "round-trip"} <= set(table["kind"])


def test_plots_are_files_of_the_run_folder_and_captures_only_where_they_are_wanted(
    scenario: Path, anabranch: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    done = anabranch("run", scenario, "--plots", "rtt,sequence", "--no-figure", "--out", folder)
    assert done.returncode == 0, done.stderr
    made = {f"{plot}.{kind}" for plot in ("rtt", "sequence") for kind in ("png", "svg")}
    assert made | {"subflows.parquet"} <= {file.name for file in folder.iterdir()}
    assert not list(folder.glob("*.pcapng")) + list(folder.glob("session.*"))
    text = (folder / "sequence.svg").read_text("utf-8")
    for name in ("segment", "acknowledged", "window", "data-acknowledged"):
        assert f'id="{name}"' in text
    first = text
    anabranch("run", scenario, "--plots", "sequence", "--no-figure", "--out", folder, "--pcap")
    assert (folder / "sequence.svg").read_text("utf-8") == first
    assert not (folder / "rtt.png").exists(), "an earlier run's"
    assert (folder / "server.pcapng").exists()
    anabranch("run", scenario, "--no-figure", "--out", folder)
    assert not (folder / "subflows.parquet").exists()


def test_plots_that_do_not_exist_and_live_runs_are_refused(scenario: Path, anabranch: Run) -> None:
    failed = anabranch("run", scenario, "--plots", "sequence,rt")
    assert failed.returncode == 2
    assert "there is no plot `rt`; expected one of sequence, rtt; did you mean `rtt`?" in failed.stderr
    live = anabranch("run", scenario, "--plots", "rtt", "--live")
    assert live.returncode == 2
    assert "--plots is for simulated runs" in live.stderr


def test_the_page_has_what_the_packets_say_up_to_where_it_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, found = sequences(LOSSY, tmp_path)
    own, colours = found.of(0), {"wifi": 0, "lte": 1}
    whole = page.of_session(own, colours)
    assert whole["until_s"] is None
    for flow, subflow in zip(whole["flows"], own.subflows, strict=True):
        np.testing.assert_allclose(np.cumsum(flow["sent"]["t"]) * page.TICK_S, subflow.sent_s, atol=page.TICK_S)
        np.testing.assert_array_equal(np.cumsum(flow["sent"]["begin"]), subflow.begins)
        np.testing.assert_array_equal(np.cumsum(flow["sent"]["data"]), subflow.data_begins)
        np.testing.assert_array_equal(np.cumsum(flow["sacks"]["begin"]), subflow.sacked[:, 0])
        np.testing.assert_allclose(np.cumsum(flow["rtts"]["value"]) * page.TICK_S, subflow.rtts_s[:, 1], atol=2e-5)
        assert np.cumsum(flow["acks"]["end"])[-1] == subflow.acknowledged[-1]
    monkeypatch.setattr(page, "MOST_ROWS", 1000)
    part = page.of_session(own, colours)
    until = part["until_s"]
    assert 0.0 < until < 12.0
    rows = sum(len(flow[kind]["t"]) for flow in part["flows"] for kind in ("sent", "acks", "sacks", "rtts"))
    assert 900 < rows <= 1000
    for flow, subflow in zip(part["flows"], own.subflows, strict=True):
        assert abs(len(flow["sent"]["t"]) - int((subflow.sent_s < until).sum())) <= 1


def test_a_panel_per_subflow_and_one_of_the_data(tmp_path: Path) -> None:
    run, found = sequences(LOSSY, tmp_path)
    own = found.of(1)
    arguments = {"title": "t", "subtitle": "s", "happened": (run.recording.marks, None), "span_s": 12.0}
    figure = drawing.draw_sequences(own, paths=("wifi", "lte"), **arguments)  # type: ignore[arg-type]
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_gid() != "events"]
    assert titles[-1] == "Sequence numbers of the data (MB)"
    assert titles[:-1] == [f"Sequence numbers of {name} (MB)" for name in sequence.names(own.subflows)]
    many = Sequences(own.subflows * 9, own.data)
    figure = drawing.draw_round_trips(many, paths=("wifi", "lte"), **arguments)  # type: ignore[arg-type]
    assert len([axes for axes in figure.axes if axes.get_gid() != "events"]) == drawing.MOST_SUBFLOWS
    assert f"the first 8 of {len(many.subflows)} subflows" in " ".join(t.get_text() for t in figure.texts).replace(
        "\u00a0", " "
    )
