"""`anabranch explain`: planted faults are found, every moment has one cause, and the run stays the same."""

from __future__ import annotations

import json
import pickle
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

import anabranch
from anabranch import _core
from anabranch.figures import causes as figures
from anabranch.results import events, linktime
from anabranch.runs import reading
from anabranch.runs.explanation import explain
from anabranch.wording import causes

Run = Callable[..., CompletedProcess[str]]

# Two links that one download can fill, with queues that the control needs.
HEALTHY = """
schema = 1
duration = "60 s"
[transport]
scheduler = "min-rtt"
congestion_control = "cubic"
receive_buffer = "4 MB"
send_buffer = "4 MB"
[link.wifi]
rtt = "30 ms"
rate = "10 Mb/s"
queue = "60 kB"
[link.lte]
rtt = "50 ms"
rate = "5 Mb/s"
queue = "60 kB"
[[session]]
paths = ["wifi", "lte"]
video = { kind = "bulk", size = "20 MB" }
"""

RATES = {"wifi": 10e6, "lte": 5e6}


def healthy(**tables: Any) -> dict[str, Any]:
    """The scenario without a fault, with other tables."""
    return {**tomllib.loads(HEALTHY), **tables}


PLANTS: dict[str, tuple[set[str], Mapping[str, Any]]] = {
    "random loss": ({"loss-random"}, {"link.wifi.loss": "2 %"}),
    "queues of three packets": (
        {"loss-queue"},
        {"link.wifi.queue": "4500 B", "link.lte.queue": "4500 B"},
    ),
    "a small receive buffer": ({"receive-window"}, {"transport.receive_buffer": "25 kB"}),
    "a small send buffer": ({"send-buffer"}, {"transport.send_buffer": "25 kB"}),
    # The sender notices its end only when it tries again.
    "a link cut for ten seconds": (
        {"link-down", "loss-outage"},
        {"event": [{"at": "3 s", "link": "wifi", "down": True}, {"at": "13 s", "link": "wifi", "down": False}]},
    ),
    "a link that became slow": ({"link-slow"}, {"event": [{"at": "4 s", "link": "wifi", "rate": "1 Mb/s"}]}),
    "another connection": ({"shared"}, {"traffic": [{"path": "wifi"}]}),
    "a backup": ({"backup"}, {"path": {"wifi": {"links": ["wifi"]}, "lte": {"links": ["lte"], "backup": True}}}),
    "a client that stops reading": (
        {"reader"},
        {"event": [{"at": "3 s", "session": 0, "reads": False}, {"at": "18 s", "session": 0, "reads": True}]},
    ),
    "a server that stops writing": (
        {"application"},
        {"event": [{"at": "3 s", "session": 0, "writes": False}, {"at": "18 s", "session": 0, "writes": True}]},
    ),
    # Half a round trip is the request's, half that of the last bytes.
    "small files": (
        {"request", "last-bytes"},
        {
            "session.0.video": {"kind": "bulk", "size": "3 kB"},
            "session.0.player": {"kind": "on-off", "duration": "30 s"},
        },
    ),
}
"""What is wrong, the causes of which one has to be first, and the keys."""


@pytest.mark.parametrize("name", PLANTS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_planted_fault_is_the_first_cause(name: str, seed: int) -> None:
    causes, fault = PLANTS[name]
    found = explain(healthy(), seed=seed, set=fault)
    first, share = next(iter(found.causes.items()))
    assert first in causes, found.causes
    assert found.first_cause in causes
    assert found.causes.get("unexplained", 0.0) <= 0.02
    assert share > 2 * explain(healthy(), seed=seed).causes.get(first, 0.0)


@pytest.mark.parametrize("name", PLANTS)
def test_the_run_without_the_fault_returns_most_of_what_it_took(name: str) -> None:
    causes, fault = PLANTS[name]
    tried = explain(healthy(), set=fault, what_if=True).what_if
    assert tried is not None
    best = tried.trials[0]
    assert best.cause in causes, [(trial.cause, trial.gain) for trial in tried.trials]
    # The remedy can be copied: a run with it gives what was said.
    again = explain(healthy(), set={**fault, **best.set}, what_if=True).what_if
    assert again is not None
    assert again.value == best.value
    assert best.gain == pytest.approx(tried.value - best.value if tried.lower_is_better else best.value - tried.value)
    if tried.measure == "download_s" and name != "small files":
        unharmed = explain(healthy(), what_if=True).what_if
        assert unharmed is not None
        assert best.gain >= 0.5 * (tried.value - unharmed.value)


def test_the_pace_of_the_server_is_a_cause_that_can_be_taken_away() -> None:
    video = {"kind": "dash", "rates": ["0.5 Mb/s", "1 Mb/s"], "segment_duration": "4 s", "duration": "60 s"}
    paced = {"session.0.video": video, "session.0.player": {"kind": "bola"}, "server.response_pacing": "sammy"}
    found = explain(healthy(), set=paced, what_if=True)
    assert found.what_if is not None
    assert next(iter(found.causes)) == "pacing"
    (remedy,) = [trial for trial in found.what_if.trials if trial.cause == "pacing"]
    assert remedy.set == {"server.response_pacing": "off"}
    assert "pacing" not in explain(healthy(), set={**paced, **remedy.set}).causes


def test_one_remedy_takes_away_the_outages_of_all_paths_and_what_they_lost() -> None:
    cuts = [
        {"at": at, "link": link, "down": down}
        for link, begin, end in (("wifi", "3 s", "9 s"), ("lte", "10 s", "14 s"))
        for at, down in ((begin, True), (end, False))
    ]
    found = explain(healthy(event=cuts), what_if=True)
    assert found.what_if is not None
    assert found.causes["loss-outage"] > 0.0
    outages = [trial.what for trial in found.what_if.trials if "outage" in trial.what]
    assert outages in (["no outage of wifi and lte"], ["no outage of lte and wifi"])


def test_another_scheduler_returns_what_the_present_one_costs() -> None:
    fault = {
        "transport.kernel": "upstream",
        "transport.scheduler": "gr-sty",
        "link.wifi.rate": "16 Mb/s",
        "session.0.video": {"kind": "bulk", "size": "20 MB"},
    }
    found = explain(healthy(), set=fault, what_if=True)
    assert found.what_if is not None
    # Linux's own goes with data that is given to subflows ahead; ours helps against last bytes, too, which are fewer.
    tried = {trial.set["transport.scheduler"]: trial for trial in found.what_if.trials if trial.cause == "scheduler"}
    assert set(tried) == {"linux", "earliest"}
    assert all(trial.replaces and trial.gain > 0.0 for trial in tried.values())
    assert found.first_cause == "scheduler"


def test_remedies_keep_what_the_cause_is_not_about() -> None:
    events = [
        {"at": "3 s", "link": "wifi", "down": True},
        {"at": "9 s", "link": "wifi", "down": False},
        {"at": "12 s", "link": "wifi", "loss": "1 %", "rate": "2 Mb/s"},
        {"at": "20 s", "link": "lte", "down": True},
        {"at": "21 s", "link": "lte", "down": False},
    ]
    tried = explain(healthy(event=events), what_if=True).what_if
    assert tried is not None
    sets = {trial.cause: dict(trial.set) for trial in tried.trials}
    for cause, gone in (("link-slow", "rate ="), ("link-down", "cut = ")):
        (key,) = sets[cause]
        assert key == "event"
        assert gone not in sets[cause][key]
    assert sets["link-slow"]["event"].count("cut = ") == 4
    # The loss of wifi stays where its rate does not change.
    assert "loss" in sets["link-slow"]["event"]


def test_the_command_prints_remedies_that_can_be_copied(anabranch: Run) -> None:
    told = anabranch("explain", "dash/ratio-1-5", "--segment", "20", "--what-if")
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[1] == (
        "Look first at path2: random losses, their repair, and the smaller window after them."
    )
    value, keys = re.findall(r"^ +([\d.]+) Mb/s  \([\d.]+ Mb/s more\)  .*:\n +(--set .*)$", told.stdout, re.MULTILINE)[
        0
    ]
    again = anabranch("explain", "dash/ratio-1-5", "--segment", "20", "--what-if", "--json", *shlex.split(keys))
    found = json.loads(again.stdout)["what_if"]
    assert found["measure"] == "throughput_bps"
    assert f"{found['value'] / 1e6:.2f}" == value
    assert "what_if" in json.loads(anabranch("explain", "dash/ratio-1-5", "--json").stdout)


def test_the_command_names_the_connection_that_shares_the_path(anabranch: Run) -> None:
    shared = ("--set", "duration=40 s", "--set", 'traffic=[{path="path1", count=3}]')
    told = anabranch("explain", "bulk/two-paths", *shared)
    assert told.returncode == 0, told.stderr
    assert re.fullmatch(
        r"Look first at path1: packets of another connection \(traffic [0-2]\)\.", told.stdout.splitlines()[1]
    )


def test_options_that_are_too_long_for_a_terminal_are_left_to_json(anabranch: Run) -> None:
    arguments = ("explain", "mobile/walk", "--seed", "2", "--what-if")
    told = anabranch(*arguments)
    assert re.search(
        r"no outage of wifi:\n +\(3 keys, too long for here: --json has them\)$", told.stdout, re.MULTILINE
    )
    assert max(map(len, told.stdout.splitlines())) < 500
    trials = json.loads(anabranch(*arguments, "--json").stdout)["what_if"]["trials"]
    (outage,) = [trial for trial in trials if trial["what"] == "no outage of wifi"]
    assert len(outage["set"]) == 3


def test_other_sessions_are_left_out_and_the_explained_one_is_measured() -> None:
    viewers = {"session.0.count": 3, "session.0.stagger": "2 s"}
    tried = explain(healthy(), set=viewers, session=2, what_if=True).what_if
    assert tried is not None
    best = tried.trials[0]
    assert (best.cause, best.set) == ("shared", {"session.0.count": "1"})
    assert best.value < 0.6 * tried.value


def test_where_no_cause_is_large_nothing_is_tried(anabranch: Run, tmp_path: Path) -> None:
    # Token buckets, whose rates are no constants to multiply.
    buckets = HEALTHY.replace('"10 Mb/s"', '{ rate = "10 Mb/s", burst = "10 kB" }')
    buckets = buckets.replace('"5 Mb/s"', '{ rate = "5 Mb/s", burst = "10 kB" }')
    (tmp_path / "buckets.toml").write_text(buckets, "utf-8")
    told = anabranch("explain", "buckets.toml", "--what-if")
    assert told.stdout.splitlines()[-1] == "No cause is large enough to try the run without it."
    assert told.stdout.splitlines()[1] == "No fault found: no cause has more than in runs without a fault."


def test_a_run_explains_itself() -> None:
    run = anabranch.run(healthy(), seed=4, set={"link.wifi.loss": "2 %"})
    assert run.explain() == explain(healthy(), seed=4, set={"link.wifi.loss": "2 %"})
    again = pickle.loads(pickle.dumps(run)).explain(segment=0, what_if=True)
    assert again.what_if is not None
    assert again.what_if.trials[0].cause == "loss-random"
    assert again.what_if.value == run.explain(what_if=True).what_if.value  # type: ignore[union-attr]
    with pytest.raises(anabranch.InputError, match="there is no stall 1"):
        run.explain(stall=1)


def test_the_figure_draws_the_capacity_of_each_path_by_cause() -> None:
    found = explain("mobile/walk", seed=2, stall=1)
    axes = found.figure().axes
    titles = [each.get_title(loc="left") for each in axes]
    assert titles[:3] == [
        "Playout buffer (s)",
        "Link of lte while a response was due (Mb/s)",
        "Link of wifi while a response was due (Mb/s)",
    ]
    # The explained time, and a fifth of it on both sides.
    begin, end = axes[0].get_xlim()
    assert found.begin_s - 0.2 * (found.end_s - found.begin_s) - 0.01 <= begin < found.begin_s
    assert found.end_s < end <= found.end_s + 0.2 * (found.end_s - found.begin_s) + 0.05
    for number, path in ((1, "lte"), (2, "wifi")):
        drawn = {area.get_gid() for area in axes[number].collections}
        largest = max((part for part in found.parts if part.path == path), key=lambda part: part.share)
        assert {f"cause-{largest.cause}", "cause-useful", "stalls"} <= drawn


def test_link_time_over_time_sums_to_the_account() -> None:
    found = explain("dash/ratio-1-5", seed=1)
    shown = found._over_time
    assert shown is not None
    over_time = linktime.of_table(shown.table, *shown.around(found.begin_s, found.end_s))
    width = over_time.edges_s[1] - over_time.edges_s[0]
    bits: dict[str, float] = {}
    for rates in over_time.rates_bps.values():
        for cause, rate in rates.items():
            bits[cause] = bits.get(cause, 0.0) + rate.sum() * width
    player = bits.pop("player", 0.0)
    assert sum(bits.values()) == pytest.approx(found.possible_bits)
    assert bits["loss-random"] / (sum(bits.values())) == pytest.approx(found.causes["loss-random"])
    assert player >= 0.0


def test_the_command_draws_the_figure(anabranch: Run, tmp_path: Path) -> None:
    for name in ("first.svg", "second.svg"):
        assert anabranch("explain", "one-pipe/chunks-1-5", "--plot", name).returncode == 0
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()
    told = anabranch("explain", "one-pipe/chunks-1-5", "--plot", "figure.txt")
    assert (told.returncode, told.stderr) == (
        2,
        "error: figure.txt: there is no such format of figures; expected .png, .svg, .pdf\n",
    )


@pytest.mark.parametrize("seed", range(1, 6))
def test_nothing_stands_out_without_a_fault(seed: int) -> None:
    found = explain(healthy(), seed=seed)
    assert found.useful_share > 0.93
    assert max(found.causes.values()) < 0.05
    assert found.first_cause is None
    assert found.useful_share + sum(found.causes.values()) == pytest.approx(1.0)


def test_every_moment_in_which_a_response_is_due_is_counted_once_on_each_path() -> None:
    loaded = reading.load(healthy(), reading.overrides_of({"link.wifi.loss": "1 %"}))
    outcome = _core.run(loaded, seed=3, record_events=False, progress=None, account=True)
    session = json.loads(outcome.metrics_json)["sessions"][0]
    columns = outcome.account()
    assert columns is not None
    table = events.of_columns(columns)
    due = session["finished_s"] - session["downloads"][0]["requested_s"]
    for path, rate in RATES.items():
        rows = table.filter(table["path"] == path)
        # Until the last byte was read: the rest of its slice is not due.
        assert rows["link_s"].sum() == pytest.approx(due, abs=0.001)
        assert rows["bits"].sum() == pytest.approx(due * rate, rel=0.001)
    useful = table.filter(table["cause"] == "useful")["bits"].sum()
    # 20 MB in segments of 1428 bytes or less, in packets of 1500.
    assert useful * 1428 / 1500 == pytest.approx(session["bytes"] * 8, rel=0.01)


@pytest.mark.parametrize("scenario", ["sticky/base", "dash/ratio-1-5", "dash/four-viewers", "mobile/walk"])
def test_the_account_changes_nothing_of_the_run_and_leaves_little_unexplained(scenario: str) -> None:
    loaded = reading.load(scenario)
    runs = [_core.run(loaded, seed=2, record_events=False, progress=None, account=account) for account in (False, True)]
    assert runs[0].metrics_json == runs[1].metrics_json
    assert runs[0].account() is None
    for session in range(len(json.loads(runs[1].metrics_json)["sessions"])):
        assert explain(scenario, seed=2, session=session).causes.get("unexplained", 0.0) <= 0.02


def test_a_segment_and_a_time_name_the_same_response() -> None:
    run = anabranch.run("dash/ratio-1-5", seed=1)
    fetched = run.metrics["sessions"][0]["media_segments"]
    assert fetched is not None
    middle = (fetched[20]["requested_s"] + fetched[20]["finished_s"]) / 2
    by_segment = explain("dash/ratio-1-5", segment=fetched[20]["index"])
    by_time = explain("dash/ratio-1-5", at=middle)
    assert by_segment.parts == by_time.parts
    assert by_segment.due_s == pytest.approx(fetched[20]["download_s"], abs=0.001)


def test_a_stall_is_explained_from_the_fullest_buffer_to_its_end(anabranch: Run) -> None:
    outage = ("--set", "link.wifi.rate=1 Mb/s", "--set", "link.lte.rate=0.5 Mb/s")
    made = anabranch("run", "mobile/walk", *outage, "--no-figure", "--out", "walk")
    assert made.returncode == 0
    told = anabranch("explain", "walk", "--stall", "1", "--json")
    again = anabranch("explain", "mobile/walk", *outage, "--stall", "1", "--json")
    assert told.stdout == again.stdout
    found = json.loads(told.stdout)
    assert found["begin_s"] < found["end_s"]
    assert sum(found["causes"].values()) + found["useful_share"] == pytest.approx(1.0)
    plain = anabranch("explain", "walk", "--stall", "1").stdout.splitlines()
    assert len(plain) <= 15
    assert "the buffer fell from" in plain[2]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("run.json", '"engine": "sim"', '"engine": "live"', "a run in real time"),
        ("metrics.json", '"packets": ', '"packets": 1', "gives other metrics; make the run again"),
    ],
)
def test_a_run_that_cannot_be_repeated_is_not_explained(
    anabranch: Run, tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    made = anabranch("run", "one-pipe/chunks-1-5", "--set", "duration=5 s", "--no-figure", "--out", "made")
    assert made.returncode == 0
    assert anabranch("explain", "made").returncode == 0
    place = tmp_path / "made" / file
    text = place.read_text("utf-8")
    assert old in text
    place.write_text(text.replace(old, new, 1), "utf-8")
    told = anabranch("explain", "made")
    assert told.returncode == 2
    assert message in told.stderr


def test_the_explanations_of_the_readme_work_and_keep_to_the_width_of_a_page(anabranch: Run) -> None:
    page = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    commands = re.findall(r"^    anabranch (explain .*?)(?: +#.*)?$", page, re.MULTILINE)
    assert commands
    for command in commands:
        told = anabranch(*command.split())
        assert told.returncode == 0, told.stderr
        # No cause is broken into two lines.
        assert all(re.match(r"  *[\d.]+ %  ", line) for line in told.stdout.splitlines()[4:]), told.stdout


def test_the_guide_shows_what_the_command_prints(anabranch: Run) -> None:
    page = (Path(__file__).parent.parent / "docs" / "how-to" / "explain.md").read_text("utf-8")
    shown = r"(?:^    anabranch (run .*)\n)?^    anabranch (explain .*)\n\n```\n((?:.*\n)*?)```$"
    samples = re.findall(shown, page, re.MULTILINE)
    assert len(samples) == page.count("```") / 2 >= 3
    for before, command, sample in samples:
        if before:
            anabranch(*shlex.split(before))
        assert anabranch(*command.split()).stdout == sample
    assert set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == set(causes.CAUSES) - {"player"}
    assert set(causes.SHORT) == set(causes.CAUSES) | {"useful"} == set(figures.FILLINGS) - {figures.OTHERS}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sticky/base", "--stall", "99"), "there is no stall 99"),
        (("sticky/base", "--session", "7"), "there is no session 7; expected one of 0 to 0"),
        (("sticky/base", "--stall", "1", "--at", "3 s"), "several of stall, segment and at"),
        (("sticky/base", "--at", "1 h"), "no response was due at 3600 s"),
        (("dash/ratio-1-1", "--segment", "9999"), "segment 9999 was not downloaded"),
        (("bulk/one-path", "--segment", "9999"), "segment 9999 was not downloaded"),
        (("dash/ratio-1-9",), "dash/ratio-1-"),
        (("-", "--what-if"), "standard input can be read only once"),
    ],
)
def test_what_is_not_there_is_named(anabranch: Run, arguments: tuple[str, ...], message: str) -> None:
    told = anabranch("explain", *arguments)
    assert told.returncode == 2
    assert message in told.stderr
    assert "Traceback" not in told.stderr
