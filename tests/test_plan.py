"""Plans: what they vary, and what is refused, with file and line."""

import json
import math
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anabranch import InputError
from anabranch.experiments import conditions, estimate, plan, sweep
from anabranch.experiments.changes import Changes, seeds_of
from conftest import Run

HEAD = """\
schema = 1
question = "Which?"
scenario = "base.toml"
seeds = 2
"""

BASE = """\
schema = 1
duration = "2 s"
[transport]
scheduler = "min-rtt"
[link.wifi]
rtt = "20 ms"
rate = "4 Mb/s"
loss = "1 %"
[link.lte]
rtt = "60 ms"
rate = "2 Mb/s"
[[session]]
video = { kind = "bulk" }
"""

COMPARE = '[compare]\nmetric = "goodput_bps"\nbetter = "higher"\nbetween = "transport.scheduler"\n'

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a plan next to its base."""
    (tmp_path / "base.toml").write_text(BASE, encoding="utf-8")

    def call(text: str) -> Path:
        file = tmp_path / "plan.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return call


def labels(file: Path) -> list[dict[str, Any]]:
    """What distinguishes the runs of a plan."""
    read = plan.load(file)
    return [run.labels for run in sweep.Experiment.of(read).runs(read.seeds)]


def test_axes_are_crossed_and_seeds_are_the_same_everywhere(write: Write) -> None:
    file = write(
        HEAD + '[vary]\ntransport.scheduler = ["min-rtt", "ecf"]\n'
        '"link.wifi.rtt" = { from = 10, to = 30, step = 10, unit = "ms" }\n'
    )
    found = [tuple(each.values()) for each in labels(file)]
    expected = [(s, f"{rtt} ms", seed) for s in ("min-rtt", "ecf") for rtt in (10, 20, 30) for seed in (1, 2)]
    assert found == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{ from = 0.5, to = 1.05, step = 0.1 }", [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
        ("{ from = 0.1, to = 0.3, step = 0.1 }", [0.1, 0.2, 0.3]),
        ("{ from = 1, to = 100, steps = 3, spacing = 'log' }", [1.0, 10.0, 100.0]),
        ("{ from = 7, to = 7, steps = 1 }", [7.0]),
    ],
)
def test_ranges_have_the_values_that_they_say(write: Write, spec: str, expected: list[float]) -> None:
    read = plan.load(write(HEAD + f'[vary]\n"link.wifi.loss.share" = {spec}\n'))
    assert [point.labels["link.wifi.loss.share"] for point in read.axes[0].points] == expected


def test_zipped_lists_are_walked_together(write: Write) -> None:
    file = write(HEAD + '[[zip]]\n"link.wifi.rtt" = ["10 ms", "20 ms"]\n"link.lte.rtt" = ["30 ms", "40 ms"]\n')
    assert [tuple(each.values())[:2] for each in labels(file)[::2]] == [("10 ms", "30 ms"), ("20 ms", "40 ms")]


def test_choices_are_named_sets_of_overrides(write: Write) -> None:
    file = write(
        HEAD + '[choose.variant]\n"as it is" = {}\nfast = { link.wifi.rate = "9 Mb/s", link.lte.rate = "8 Mb/s" }\n'
    )
    read = plan.load(file)
    scenarios = [c.overrides for c in sweep.Experiment.of(read).conditions]
    assert [each["variant"] for each in labels(file)[::2]] == ["as it is", "fast"]
    assert [len(overrides) for overrides in scenarios] == [0, 1]


def test_a_seed_in_a_text_is_that_of_the_run(write: Write) -> None:
    file = write(
        HEAD + '[set]\n"link.wifi.rate" = { synthetic = "lte", mean = "2 Mb/s" }\n"link.wifi.rate.seed" = "{seed}"\n'
    )
    read = plan.load(file)
    runs = sweep.Experiment.of(read).runs(read.seeds)
    assert [dict(run.overrides)["link.wifi.rate.seed"] for run in runs] == ["1", "2"]
    nested = plan.load(
        write(HEAD + "[set]\nlink.wifi.rate = { synthetic = 'lte', mean = '2 Mb/s', seed = '{seed}' }\n")
    )
    assert [run.digest for run in sweep.Experiment.of(nested).runs((1, 2))] == [run.digest for run in runs]
    assert "seed = 2" in runs[1].scenario().resolved


def test_a_number_may_follow_the_seed(write: Write) -> None:
    file = write(HEAD + '[set]\n"link.wifi.rtt" = "{10 + 5 * seed} ms"\n"link.lte.rtt" = "{1 + 0.137 * seed} ms"\n')
    read = plan.load(file)
    runs = sweep.Experiment.of(read).runs(read.seeds)
    found = [(dict(run.overrides)["link.wifi.rtt"], dict(run.overrides)["link.lte.rtt"]) for run in runs]
    assert found == [("15 ms", "1.137 ms"), ("20 ms", "1.274 ms")]
    assert runs[0].digest != runs[1].digest


def test_reducers_are_named_or_follow_from_columns(write: Write) -> None:
    named = plan.load(write(HEAD + 'reducers = ["recovery_s"]\nmetrics = ["sampled_throughput.wifi.mean_bps"]\n'))
    assert named.reducers == ("recovery_s", "sampled_throughput")
    keys = {run.key for run in sweep.Experiment.of(named).runs((1,))}
    without = plan.load(write(HEAD))
    assert keys.isdisjoint(run.key for run in sweep.Experiment.of(without).runs((1,)))
    wrong = plan.load(write(HEAD + 'metrics = ["sampled_throughput.wifi.median_bps"]\n'))
    with pytest.raises(InputError, match=r"plan\.toml:5: no run of this plan has a metric `sampled_throughput"):
        sweep.Experiment.of(wrong)


def test_samples_are_drawn_once_and_fill_the_space(write: Write) -> None:
    text = HEAD + (
        "[sample]\nmethod = 'latin-hypercube'\npoints = 10\n[sample.keys]\n"
        '"link.wifi.rtt" = { from = 0, to = 100, unit = "ms" }\n'
        '"link.lte.rtt" = { from = 10, to = 1000, unit = "ms", spacing = "log" }\n'
    )
    first, second = plan.load(write(text)).axes[0], plan.load(write(text)).axes[0]
    assert first == second
    rtts = [float(str(point.labels["link.wifi.rtt"]).split()[0]) for point in first.points]
    # One in each tenth: that is what the method promises.
    assert sorted(int(rtt // 10) for rtt in rtts) == list(range(10))
    other = plan.load(write(text.replace("points", "seed = 2\npoints"))).axes[0]
    assert other.points != first.points


def test_recordings_are_paired_by_what_the_star_stands_for(write: Write, tmp_path: Path) -> None:
    for name in ("a_wifi", "b_wifi", "a_lte", "b_lte"):
        (tmp_path / f"{name}.csv").write_text(f"t,mbps\n0,{len(name)}\n1,3\n", encoding="utf-8")
    text = HEAD + (
        '[traces]\nlink.wifi.rate = "*_wifi.csv"\n'
        'link.lte.rate = { glob = "*_lte.csv", offset = "random", scale = { from = 0.5, to = 2 } }\n'
    )
    found = labels(write(text))
    assert [each["trace"] for each in found] == ["a", "a", "b", "b"]
    scales = [each["link.lte.rate.scale"] for each in found]
    # A seed has the same scale with every recording, so conditions stay paired.
    assert scales[:2] == scales[2:]
    assert scales[0] != scales[1]
    assert all(0.5 <= scale <= 2 for scale in scales)
    run = sweep.Experiment.of(plan.load(tmp_path / "plan.toml")).runs([1])[0]
    assert f"scale = {scales[0]!r}" in run.scenario().resolved


def test_recordings_take_the_keys_of_a_recorded_rate(write: Write, tmp_path: Path) -> None:
    (tmp_path / "1_drive.csv").write_text("t_s,att_mbps,verizon_mbps\n0,5,7\n1,6,8\n", encoding="utf-8")
    text = HEAD + '[traces]\nlink.wifi.rate = { glob = "*_drive.csv", rate_column = "verizon_mbps", gap = "hold" }\n'
    run = sweep.Experiment.of(plan.load(write(text))).runs([1])[0]
    resolved = tomllib.loads(run.scenario().resolved)
    # The resolved scenario has the column's number, counted from 0.
    assert resolved["link"]["wifi"]["down"]["rate"]["rate_column"] == 2


@pytest.mark.parametrize("key", ["link.lte.rate", '"link.lte.rate"'])
def test_a_recording_that_is_wrong_is_named_where_its_link_is_written(write: Write, tmp_path: Path, key: str) -> None:
    (tmp_path / "a_wifi.csv").write_text("t,mbps\n0,1\n", encoding="utf-8")
    (tmp_path / "a_lte.csv").write_text("1,1000\n2,3000\n", encoding="utf-8")
    text = HEAD + f'[traces]\nlink.wifi.rate = "*_wifi.csv"\n{key} = "*_lte.csv"\n'
    text += '[vary]\ntransport.scheduler = ["min-rtt", "ecf"]\n'
    with pytest.raises(InputError) as refused:
        sweep.Experiment.of(plan.load(write(text)))
    line = text.splitlines().index(f'{key} = "*_lte.csv"') + 1
    assert str(refused.value).startswith(f"{tmp_path / 'plan.toml'}:{line}: "), refused.value
    assert "a_lte.csv" in str(refused.value)


def test_the_key_of_a_run_is_its_content(write: Write, tmp_path: Path) -> None:
    (tmp_path / "a_wifi.csv").write_text("t,mbps\n0,1\n1,3\n", encoding="utf-8")
    text = HEAD + '[traces]\nlink.wifi.rate = "*_wifi.csv"\n'

    def keys(plan_text: str) -> list[bytes]:
        conditions._load.cache_clear()
        read = plan.load(write(plan_text))
        return [run.key for run in sweep.Experiment.of(read).runs(read.seeds)]

    first = keys(text)
    assert len(set(first)) == 2
    assert keys(text.replace("Which?", "What?") + '[vary]\ntransport.scheduler = ["min-rtt"]\n') == first
    assert not set(keys(text + '[set]\nduration = "3 s"\n')) & set(first)
    (tmp_path / "a_wifi.csv").write_text("t,mbps\n0,1\n1,4\n", encoding="utf-8")
    assert not set(keys(text)) & set(first)


VARIED = '[vary]\ntransport.scheduler = ["ecf"]\nwarm_up = ["0 s", "1 s"]\nduration = ["5 s", "6 s"]\n'

MISTAKES = [
    (HEAD + "sedes = 3\n", 5, "unknown key `sedes`", "did you mean `seeds`?"),
    (HEAD + 'metrics = ["goodput_bsp"]\n', 5, "metric `goodput_bsp`", "did you mean `goodput_bps`?"),
    (HEAD + 'reducers = ["deviation"]\n', 5, "no reducer is called `deviation`", "expected one of"),
    (HEAD + 'engines = ["sim", "life"]\n', 5, "no engine of plans is called `life`", "did you mean `live`?"),
    (HEAD + 'engines = ["live/kernle"]\n', 5, "no server of live runs is called `kernle`", "did you mean `kernel`?"),
    (HEAD + 'engines = ["live/kernel/vcl"]\n', 5, "no client of live runs is called `vcl`", "did you mean `vlc`?"),
    (HEAD + 'engines = ["sim/kernel"]\n', 5, "`sim/kernel` is no engine", "live/SERVER"),
    (HEAD + 'engines = ["live", "sim", "live/anabranch"]\n', 5, "`live/anabranch` is there twice", ""),
    (HEAD + "engines = []\n", 5, "`engines` has no value", "sim"),
    (HEAD + 'engines = ["live"]\nreducers = ["buffer_deviation_s"]\n', 5, "is a reducer", "real time"),
    (HEAD + "live_runs = 3\n", 5, "a simulation is repeated exactly", "`seeds`"),
    (HEAD + 'engines = ["live"]\nlive_runs = 0\n', 6, "`live_runs` is 0", "from 1"),
    (HEAD.replace("base.toml", "mobile/wifi-let"), 3, "no shipped scenario", "did you mean `mobile/wifi-lte`?"),
    (HEAD + "[vary]\ntransport.scheduler = []\n", 6, "has no value", "expected a list"),
    (HEAD + '[vary]\ntransport.scheduler = "ecf"\n', 6, "does not vary", "[set]"),
    (HEAD + '[vary]\ntransport.scheduler = [\n  "min-rtt",\n  "efc",\n]\n', 8, "`efc`", "did you mean `ecf`?"),
    (HEAD + '[vary]\ntransport.schedulr = ["ecf"]\n', 6, "schedulr", "did you mean `scheduler`?"),
    (HEAD + '[vary]\ntransport.scheduler = ["ecf", "ecf"]\n', 6, "twice", "ecf"),
    (HEAD + "[vary]\nwarm_up = { from = 3, to = 1, step = 1 }\n", 6, "is empty", "lower end first"),
    (HEAD + "[vary]\nwarm_up = { from = 1, to = 3, stp = 1 }\n", 6, "unknown key `stp`", "did you mean `step`?"),
    (HEAD + '[traces]\nlink.wifi.rate = "none-*.csv"\n', 6, "no file matches", "none-*.csv"),
    (HEAD + '[traces]\nlink.wifi.rate = "wifi.csv"\n', 6, "`*`", "pairs/*_wifi.csv"),
    (HEAD + '[set]\nlink.wfi.rtt = "3 ms"\n', 6, "wfi", "did you mean `wifi`?"),
    (HEAD.replace("seeds = 2", 'seeds = "1-2"'), 4, "`seeds` is '1-2'", "1..10"),
    (HEAD.replace("seeds = 2", "seeds = [1, 1]"), 4, "twice", "seed"),
    (HEAD.replace("schema = 1", "schema = 2"), 1, "schema 2", "expected 1"),
    (HEAD + COMPARE, 8, "nothing varies `transport.scheduler`", "varies nothing"),
    (
        HEAD + '[vary]\ntransport.scheduler = ["ecf"]\n' + COMPARE.replace("_bps", "_pbs"),
        8,
        "goodput_pbs",
        "goodput_bps",
    ),
    (
        HEAD + '[vary]\ntransport.scheduler = ["ecf"]\n' + COMPARE + 'reference = "min-rtt"\n',
        11,
        "no value 'min-rtt'",
        "ecf",
    ),
    (HEAD + '[vary]\ntransport.scheduler = ["ecf"]\n' + COMPARE + "equivalent = '5'\n", 11, "`equivalent`", "5 %"),
    (
        HEAD + '[vary]\ntransport.scheduler = ["ecf"]\n' + COMPARE + 'quantiles = ["5"]\n',
        11,
        "'5' is no quantile",
        "90 %",
    ),
    (
        HEAD + VARIED + COMPARE + '[[figures]]\ny = "goodput_bps"\nkind = "heat"\n',
        15,
        "`kind` is 'heat'",
        "`map`",
    ),
    (
        HEAD + VARIED + COMPARE + '[[figures]]\ny = "goodput_bps"\nkind = "map"\nx = "warm_up"\n',
        13,
        "a map lacks `rows`",
        "axis",
    ),
    (
        HEAD + VARIED + COMPARE + '[[figures]]\ny = "stall_s"\nkind = "map"\nx = "warm_up"\nrows = "duration"\n',
        14,
        "no [compare] compares `stall_s`",
        "warm_up and duration",
    ),
    (HEAD + "[vary\n", 5, "", ""),
]


@pytest.mark.parametrize(("text", "line", "culprit", "remedy"), MISTAKES, ids=[m[2] or "syntax" for m in MISTAKES])
def test_a_mistake_is_named_with_file_and_line(
    write: Write, anabranch: Run, tmp_path: Path, text: str, line: int, culprit: str, remedy: str
) -> None:
    write(text)
    before = sorted(tmp_path.rglob("*"))
    done = anabranch("sweep", "plan.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: plan.toml:{line}: ")
    assert culprit in done.stderr
    assert remedy in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_values_that_do_not_go_together_are_named(write: Write) -> None:
    file = write(HEAD + '[vary]\nduration = ["1 s", "9 s"]\nwarm_up = ["0 s", "5 s"]\n')
    read = plan.load(file)
    with pytest.raises(InputError, match=r"plan.toml.*warm_up"):
        sweep.Experiment.of(read)


def test_plan_show_lists_runs_and_makes_none(
    write: Write, anabranch: Run, answer: Callable[..., Any], tmp_path: Path
) -> None:
    write(HEAD + '[vary]\ntransport.scheduler = ["min-rtt", "ecf"]\n' + COMPARE)
    shown = anabranch("plan", "show", "plan.toml")
    assert shown.returncode == 0
    assert "2 conditions with 2 seeds: 4 runs" in shown.stdout
    assert "ms each" in shown.stdout
    assert [line.split() for line in shown.stdout.splitlines() if line.startswith(("min-rtt", "ecf"))] == [
        ["min-rtt", "2", "0"],
        ["ecf", "2", "0"],
    ]
    assert not (tmp_path / "runs").exists()
    found = answer("plan", "show", "plan.toml")
    assert [run["labels"]["seed"] for run in found["runs"]] == [1, 2, 1, 2]
    assert found["estimated_seconds"] > 0
    assert math.isfinite(found["estimated_seconds"])


def test_a_listed_command_makes_the_run_again(
    write: Write, answer: Callable[..., Any], anabranch: Run, tmp_path: Path
) -> None:
    import polars as pl

    write(HEAD + '[vary]\ntransport.scheduler = ["min-rtt", "ecf"]\n')
    assert anabranch("sweep", "plan.toml").returncode == 0
    table = pl.read_parquet(tmp_path / "runs" / "plan" / "plan.parquet")
    for row, run in zip(table.iter_rows(named=True), answer("plan", "show", "plan.toml")["runs"], strict=True):
        again = anabranch(*run["command"][1:], "--json")
        assert json.loads(again.stdout)["sessions"][0]["goodput_bps"] == row["goodput_bps"]


@pytest.mark.parametrize("name", plan.shipped())
def test_shipped_plans_are_whole(name: str) -> None:
    experiment = sweep.Experiment.of(plan.load(name))
    assert experiment.plan.question.endswith("?")
    assert len(experiment.conditions) == experiment.plan.conditions


# --- Values in the place of the plan's ------------------------------------------------------------------------------

TWO_AXES = (
    HEAD
    + """[set]
duration = "3 s"
[vary]
transport.scheduler = ["min-rtt", "ecf"]
[choose.queue]
"20 kB" = { link.wifi.queue = "20 kB" }
"60 kB" = { link.wifi.queue = "60 kB" }
"""
)


def changed(file: Path, *overrides: tuple[str, str], **values: Any) -> list[conditions.Run]:
    """The runs of a plan with other values."""
    experiment = sweep.Experiment.of(plan.load(file, Changes(overrides, **values)))
    return experiment.runs(experiment.plan.seeds)


@pytest.mark.parametrize(
    ("text", "expected"), [("3", [1, 2, 3]), ("5..7", [5, 6, 7]), ("9, 4", [9, 4])], ids=["number", "range", "list"]
)
def test_seeds_take_the_place_of_the_plans(write: Write, text: str, expected: list[int]) -> None:
    runs = changed(write(HEAD), seeds=seeds_of(text))
    assert [run.seed for run in runs] == expected


def test_a_key_of_the_scenario_holds_in_every_run_and_after_the_plan(write: Write) -> None:
    runs = changed(write(TWO_AXES), ("duration", "1 s"), ("link.lte.loss", "2 %"))
    resolved = [tomllib.loads(run.scenario().resolved) for run in runs]
    assert len(runs) == 8
    assert {each["duration"] for each in resolved} == {"1 s"}
    assert {each["link"]["lte"]["down"]["loss"]["share"] for each in resolved} == {"2 %"}
    assert {each["link"]["wifi"]["down"]["queue"]["limit"] for each in resolved} == {"20 kB", "60 kB"}


@pytest.mark.parametrize(
    ("override", "labels"),
    [
        (("transport.scheduler", "blest"), {("blest", "20 kB"), ("blest", "60 kB")}),
        (("transport.scheduler", '["ecf", "blest"]'), {(s, q) for s in ("ecf", "blest") for q in ("20 kB", "60 kB")}),
        (("queue", "60 kB"), {("min-rtt", "60 kB"), ("ecf", "60 kB")}),
        (("queue", '["60 kB"]'), {("min-rtt", "60 kB"), ("ecf", "60 kB")}),
    ],
)
def test_the_name_of_an_axis_chooses_its_values(
    write: Write, override: tuple[str, str], labels: set[tuple[str, str]]
) -> None:
    runs = changed(write(TWO_AXES), override)
    assert {(run.labels["transport.scheduler"], run.labels["queue"]) for run in runs} == labels


def test_a_range_may_take_the_place_of_a_list(write: Write) -> None:
    file = write(HEAD + '[vary]\nlink.wifi.rtt = ["10 ms"]\n')
    runs = changed(file, ("link.wifi.rtt", '{ from = 20, to = 40, steps = 3, unit = "ms" }'))
    assert list(dict.fromkeys(run.labels["link.wifi.rtt"] for run in runs)) == ["20 ms", "30 ms", "40 ms"]


def test_an_option_may_leave_one_of_the_engines_that_a_plan_compares(anabranch: Run) -> None:
    done = anabranch("plan", "show", "kernel", "--engine", "sim", "--seeds", "1..3")
    assert done.returncode == 0, done.stderr
    assert "engine: 1 value: sim" in done.stdout
    assert "1 condition with 3 seeds: 3 runs" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["--seeds", "soon"], "--seeds soon: "),
        (["--seeds", "4,4"], "--seeds 4,4: a seed is there twice"),
        (["--engine", "ns-3"], "--engine ns-3: no engine"),
        (["--set", "duration"], "--set duration: expected KEY=VALUE"),
        (["--set", "duration=soon"], "--set duration=soon: "),
        (["--set", "queue=5 kB"], "`queue` has no value '5 kB'"),
        (["--set", "queue=[]"], "the list is empty"),
        (["--set", "transport.scheduler=[ecf]"], "no list in TOML"),
        (["--set", "transport.scheduler=blist"], "unknown scheduler `blist`"),
        (["--set", "link.wifi.queue=5 kB"], "the axis `queue` sets `link.wifi.queue`"),
        (["--set", "link.wifi.down.queue=5 kB"], "the axis `queue` sets `link.wifi.queue`"),
        (["--set", "transport.scheduler.name=blest"], "the axis `transport.scheduler` has its values"),
    ],
)
def test_what_cannot_take_the_place_of_a_value_is_refused(
    write: Write, anabranch: Run, arguments: list[str], culprit: str
) -> None:
    write(TWO_AXES)
    done = anabranch("plan", "show", "plan.toml", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert culprit in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_reference_that_an_option_took_away_is_named_with_the_option(write: Write) -> None:
    file = write(HEAD + '[vary]\ntransport.scheduler = ["min-rtt", "ecf"]\n' + COMPARE + 'reference = "min-rtt"\n')
    with pytest.raises(InputError, match=r"plan.toml:11: .* no value 'min-rtt' by --set transport.scheduler=ecf"):
        plan.load(file, Changes((("transport.scheduler", "ecf"),)))


# --- What a sweep takes ---------------------------------------------------------------------------------------------


def test_many_conditions_are_listed_by_their_axes(write: Write, anabranch: Run) -> None:
    write(
        HEAD
        + '[vary]\n"link.wifi.rtt" = { from = 1, to = 30, steps = 30, unit = "ms" }\n'
        + '[sample]\npoints = 3\n[sample.keys]\n"link.wifi.loss.share" = { from = 0, to = 3, unit = "%" }\n'
    )
    shown = anabranch("plan", "show", "plan.toml", "--seeds", 1).stdout
    assert "link.wifi.rtt: 30 values: 1 ms, 2 ms, 3 ms, 4 ms, 5 ms, 6 ms, ..., 30 ms" in shown
    assert "30 conditions on 3 networks with 1 seed: 90 runs" in shown
    assert len(shown.splitlines()) < 10
    assert len(anabranch("plan", "show", "plan.toml", "--seeds", 1, "--all").stdout.splitlines()) > 90


@pytest.mark.parametrize("number", [1, 2, 7, 64, 100])
def test_runs_that_are_timed_are_spread_over_all(number: int) -> None:
    order = list(estimate._spread(number))
    assert sorted(order) == list(range(number))
    # The first eight come from eight different eighths, as far as there are so many.
    if number >= 64:
        assert len({8 * position // number for position in order[:8]}) >= 7


def test_the_first_run_of_a_thread_counts_once() -> None:
    times = estimate._Times(2, first={1: 5.0, 2: 7.0}, later=[1.0, 2.0, 1.0, 2.0])
    assert times.mean_s == 1.5
    assert times.expected_s(12) == 6.0 + 1.5 * 10 / 2
    # Runs so long that no thread made a second one.
    assert estimate._Times(2, first={1: 5.0, 2: 7.0}).expected_s(12) == 6.0 + 6.0 * 10 / 2


def test_runs_that_are_too_long_give_a_lower_bound(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(_: conditions.Run, stop: Any) -> bytes:
        while not stop.is_set:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(estimate, "simulate", endless)
    monkeypatch.setattr(estimate, "STOP_S", 0.2)
    read = plan.load(write(HEAD), Changes(seeds=10))
    runs = sweep.Experiment.of(read).runs(read.seeds)
    found = estimate.of_sweep(read, runs, runs, 2)
    assert found is not None
    assert (found.is_lower_bound, found.timed) == (True, 0)
    assert found.seconds == pytest.approx(10 * 0.2 / 2)


def test_every_comparison_is_counted(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three schedulers are compared for each of four round trips, over a sample of five points."""
    compared = []

    def counted(_: Any, axes: Any, seeds: int) -> float:
        compared.append(([axis.columns[0] for axis in axes], seeds))
        return 1.0

    monkeypatch.setattr(estimate, "_compared_s", counted)
    read = plan.load(
        write(
            HEAD
            + '[vary]\ntransport.scheduler = ["min-rtt", "ecf", "blest"]\n'
            + '"link.wifi.rtt" = { from = 1, to = 4, steps = 4, unit = "ms" }\n'
            + '[sample]\npoints = 5\n[sample.keys]\n"link.wifi.loss.share" = { from = 0, to = 3, unit = "%" }\n'
            + COMPARE
        )
    )
    assert estimate._comparing_s(read) == 4
    assert compared == [(["transport.scheduler", "sample"], 2)] * 2


def test_numbers_that_are_compared_for_their_time_are_like_those_of_the_plan(write: Write) -> None:
    read = plan.load(write(HEAD + '[vary]\ntransport.scheduler = ["min-rtt", "ecf"]\n' + COMPARE))
    assert estimate._compared_s(read.contrasts[0], read.axes, 20) > 0


def test_values_that_need_each_other_may_have_any_order(tmp_path: Path) -> None:
    text = 'schema = 1\nduration = "180 s"\nwarm_up = "60 s"\n[link.a]\nrate = "2 Mb/s"\n[[session]]\n'
    (tmp_path / "base.toml").write_text(text, encoding="utf-8")
    file = tmp_path / "mine.toml"
    file.write_text('schema = 1\nquestion = "?"\nscenario = "base.toml"\nseeds = 1\n', encoding="utf-8")
    both = (("duration", "40 s"), ("warm_up", "15 s"))
    for overrides in (both, both[::-1]):
        conditions.check(plan.load(file, Changes(overrides)))
    # Alone, the first one leaves a warm-up that is longer.
    with pytest.raises(InputError, match="`warm_up` is not shorter than `duration`"):
        conditions.check(plan.load(file, Changes(both[:1])))
