"""Algorithms in Python: the same bytes as the built-in ones, options, notes, messages, worker processes, the suite."""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import anabranch
from anabranch import AlgorithmError, InputError, _core
from anabranch.algorithms import checking, sources
from anabranch.figures import compare
from anabranch.figures.comparison import Column
from anabranch.report import timelines
from anabranch.runs import reading, runfolder, session
from conftest import Run

EXAMPLES = "anabranch.algorithms.examples"
PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "own-algorithm.md"

# Losses, an outage and a path that is much worse than the other: every method of the four examples has something to do.
NETWORK: dict[str, Any] = {
    "schema": 1,
    "question": "Is it the same?",
    "duration": "90 s",
    "transport": {"congestion_control": "newreno"},
    "link": {
        "wifi": {"rtt": "30 ms", "rate": {"synthetic": "wifi-walk", "mean": "4 Mb/s"}, "loss": "0.5 %"},
        "lte": {"rtt": "90 ms", "rate": "1 Mb/s"},
    },
    "session": [{"video": {"kind": "dash", "ladder": "bbb-2s", "duration": "60 s"}, "player": "bola"}],
    "event": [
        {"at": "20 s", "link": "wifi", "down": True},
        {"at": "24 s", "link": "wifi", "down": False},
    ],
}

SAME = {
    "scheduler": ("min-rtt", f"{EXAMPLES}.min_rtt:MinRtt"),
    "congestion_control": ("newreno", f"{EXAMPLES}.new_reno:NewReno"),
    "path_policy": ("pud", f"{EXAMPLES}.pud:Pud"),
    "abr_rule": ("bola", f"{EXAMPLES}.bola:Bola"),
}


# Annotated with names of the package, so that `mypy` checks that they are the types of the bases.
class Typed(anabranch.Scheduler):
    def decide(self, view: anabranch.SchedulerView, trigger: anabranch.Trigger) -> anabranch.Subflow | anabranch.Wait:
        return view.candidates[0 if trigger == "new-data" else -1]

    def on_sent(self, packet: anabranch.SentPacket, subflow: anabranch.Subflow) -> None:
        pass


class TypedControl(anabranch.CongestionControl):
    def on_ack(self, ack: anabranch.Ack, window: anabranch.Window, siblings: anabranch.Siblings) -> None:
        if ack.may_grow and siblings.own is not None:
            window.cwnd += 1.0 / siblings.own.cwnd

    def on_congestion(self, cause: anabranch.LossCause, window: anabranch.Window, siblings: anabranch.Siblings) -> None:
        if siblings.own is not None:
            window.reduce_to(siblings.own.cwnd / (4 if cause == "timeout" else 2))


class TypedRule(anabranch.AbrRule):
    def decide(self, view: anabranch.PlayerView) -> anabranch.Decision:
        return anabranch.Decision(view.top, reason="highest")

    def observe(self, view: anabranch.PlayerView, event: anabranch.PlayerEvent) -> None:
        pass


SILLY = """
    import anabranch


    class Silly(anabranch.Scheduler):
        def __init__(self, *, share=0.5):
            self.share = share

        def decide(self, view, trigger):
            chosen = view.candidates[-1] if self.ctx.rng.random() < self.share else view.candidates[0]
            self.ctx.emit("choice", chosen.position, subflow=chosen.id)
            self.ctx.emit("window", free=view.window_space, srtt=chosen.srtt)
            return chosen
"""


def write(folder: Path, module: str, text: str) -> None:
    (folder / f"{module}.py").write_text(textwrap.dedent(text), encoding="utf-8")


def scheduler_of(body: str) -> str:
    """A module whose scheduler decides like this."""
    body = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return (
        "import anabranch\n\n\nclass Mine(anabranch.Scheduler):\n    def decide(self, view, trigger):\n" + body + "\n"
    )


def with_algorithm(kind: str, name: str) -> dict[str, Any]:
    if kind != "abr_rule":
        return {**NETWORK, "transport": {**NETWORK["transport"], kind: name}}
    player = {"kind": "bola", "rule": name} if ":" in name else name
    return {**NETWORK, "session": [{**NETWORK["session"][0], "player": player}]}


def test_the_types_of_own_algorithms_are_names_of_the_package() -> None:
    given = {name for name in vars(_core) if isinstance(getattr(_core, name), type)} - {
        *("LiveError", "Outcome", "Scenario", "Stop", "Testbed", "Viewed", "Devices", "Serving")
    }
    assert given <= set(anabranch.__all__)
    assert all(getattr(anabranch, name) is getattr(_core, name) for name in given)
    assert set(anabranch.algorithms.__all__) - {"overrides"} <= set(anabranch.__all__)


def test_annotated_algorithms_run() -> None:
    names = {
        kind: f"{__name__}:{cls.__name__}" for kind, cls in (("scheduler", Typed), ("congestion_control", TypedControl))
    }
    player = {"kind": "rate", "rule": f"{__name__}:{TypedRule.__name__}"}
    change = {"transport": names, "session.0.player": player, "duration": "10 s"}
    run = anabranch.run(NETWORK, set=change)
    assert run.metrics["sessions"][0]["bytes"] > 100_000


@pytest.mark.parametrize("kind", SAME)
def test_a_built_in_algorithm_in_python_gives_the_same_bytes(kind: str) -> None:
    built_in, own = (anabranch.run(with_algorithm(kind, name), seed=7, events=True) for name in SAME[kind])
    assert own.outcome.metrics_json == built_in.outcome.metrics_json
    assert own.events.equals(built_in.events)
    (viewer,) = own.metrics["sessions"]
    # The test has the power to see a difference: every kind had decisions to make.
    happened = {
        "scheduler": (viewer["path_switches"] or 0) > 100,
        "congestion_control": sum(subflow["loss_events"] or 0 for subflow in viewer["subflows"]) > 5,
        "path_policy": sum(subflow["times_disabled"] or 0 for subflow in viewer["subflows"]) > 0,
        "abr_rule": viewer.get("switches", 0) > 1,
    }
    assert happened[kind]


@pytest.fixture
def silly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    write(tmp_path, "silly", SILLY)
    monkeypatch.chdir(tmp_path)
    return "silly:Silly"


def test_options_numbers_and_notes(silly: str) -> None:
    runs = [
        anabranch.run(with_algorithm("scheduler", silly), seed=3, events=True, set={"transport.scheduler.share": share})
        for share in (0, 0.9, 0.9)
    ]
    first, second, again = (run.outcome.metrics_json for run in runs)
    assert first != second == again
    assert runs[1].events.equals(runs[2].events)
    notes = runs[0].events.filter(event="noted")
    assert set(notes["detail"]) == {"choice", "window.free", "window.srtt"}
    # With a share of nothing it is the first candidate, nearly always the only one of position 0.
    positions = notes.filter(detail="choice")["value"]
    assert 0 < (positions == 0).sum() <= len(positions)
    assert "value" not in anabranch.run(NETWORK, events=True).events.columns


def test_a_segment_is_as_short_as_a_scheduler_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        tmp_path,
        "mine",
        "from anabranch.algorithms import Send\n" + scheduler_of("return Send(view.candidates[0], 500)"),
    )
    monkeypatch.chdir(tmp_path)
    found = anabranch.run(with_algorithm("scheduler", "mine:Mine"), events=True)
    sent = found.events.filter(event="segment-sent", detail="new", source="session 0/server")
    assert sent["bytes"].max() == 500


@pytest.mark.parametrize("kind", ["scheduler", "path_policy"])
def test_own_algorithms_see_which_paths_are_metered(kind: str) -> None:
    seen: set[tuple[int, bool]] = set()

    @anabranch.scheduler("thrifty")
    class Thrifty(anabranch.Scheduler):
        def decide(self, view: anabranch.SchedulerView, _trigger: anabranch.Trigger) -> anabranch.Subflow | None:
            seen.update((subflow.path, subflow.metered) for subflow in view.subflows)
            return next((subflow for subflow in view.candidates if not subflow.metered), None)

    @anabranch.path_policy("frugal")
    class Frugal(anabranch.PathPolicy):
        def decide(self, subflows: tuple[anabranch.Subflow, ...]) -> list[anabranch.Subflow]:
            seen.update((subflow.path, subflow.metered) for subflow in subflows)
            return [subflow for subflow in subflows if not subflow.metered] or list(subflows)

    name = {"scheduler": "thrifty", "path_policy": "frugal"}[kind]
    metered = {"path": {link: {"links": [link], "metered": link == "lte"} for link in ("wifi", "lte")}}
    steady = {"duration": "10 s", "link.wifi.rate": "4 Mb/s", "link.wifi.loss": "0 %"}
    run = anabranch.run({**with_algorithm(kind, name), **metered}, set=steady)
    assert seen == {(0, False), (1, True)}
    sent = {subflow["path"]: subflow["bytes"] for subflow in run.metrics["sessions"][0]["subflows"]}
    assert sent["lte"] == 0 < sent["wifi"]


@pytest.mark.parametrize("pacing", ["levels", "off"])
def test_an_own_scheduler_sees_the_buffer_that_the_server_estimates(pacing: str) -> None:
    seen: list[tuple[float, float | None]] = []

    @anabranch.scheduler("looker")
    class Looker(anabranch.Scheduler):
        def decide(self, view: anabranch.SchedulerView, _trigger: anabranch.Trigger) -> anabranch.Subflow:
            # The client has a scheduler for its requests.
            if view.next > 20_000:
                seen.append((view.now, view.buffer))
            return view.candidates[0]

    change = {"duration": "19 s", "server.response_pacing": pacing}
    run = anabranch.run(with_algorithm("scheduler", "looker"), set=change, events=True)
    if pacing == "off":
        assert {buffer for _, buffer in seen} == {None}
        return
    recorded = run.recording.sessions[0]
    known = [(now, buffer) for now, buffer in seen if buffer is not None]
    assert len(known) == len(seen) > 500
    times, estimates = np.transpose(known)
    errors = np.abs(np.interp(times, recorded.times_s, recorded.buffer_s) - estimates)
    assert estimates.max() > 5.0
    # The player's buffer is recorded each tenth of a second, and grows by 2 s in between with a media segment.
    assert np.percentile(errors, 50) < 0.05
    assert np.percentile(errors, 90) < 0.25


def test_a_decorator_registers_a_name() -> None:
    @anabranch.scheduler("the-last")
    class Last(anabranch.Scheduler):
        def decide(self, view: Any, _trigger: Any) -> Any:
            return view.candidates[-1]

    found = anabranch.run(with_algorithm("scheduler", "the-last"))
    assert 'name = "the-last"' in found.scenario
    assert found.metrics["sessions"][0]["path_switches"]
    with pytest.raises(InputError, match="`min-rtt` is built in"):
        anabranch.scheduler("min-rtt")(Last)


BROKEN: dict[str, tuple[str | dict[str, Any], str]] = {
    "no colon": ("sily", "unknown scheduler `sily`|`sily`"),
    "no module": ("sily:Silly", "there is no module `sily`; did you mean `silly`"),
    "no class": ("silly:Sily", "has no class `Sily`; did you mean `silly:Silly`"),
    "another kind": (SAME["congestion_control"][1], "is a congestion control; a scheduler is needed"),
    "no base": ("silly:anabranch", "is no class"),
    "no option": ({"name": "silly:Silly", "shar": 1}, "no such option; did you mean `share`"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_with_a_name_is_said_with_its_line(name: str, silly: str, anabranch: Run, tmp_path: Path) -> None:
    assert silly
    value, expected = BROKEN[name]
    loaded = reading.load(NETWORK).resolved
    text = tomllib.loads(loaded)
    assert text["transport"]["scheduler"] == {"name": "min-rtt"}
    old = '[transport.scheduler]\nname = "min-rtt"'
    keys = {"name": value} if isinstance(value, str) else value
    lines = "\n".join(f"{key} = {json.dumps(entry)}" for key, entry in keys.items())
    (tmp_path / "wrong.toml").write_text(loaded.replace(old, f"[transport.scheduler]\n{lines}"), encoding="utf-8")
    done = anabranch("run", "wrong.toml")
    assert done.returncode == 2
    assert re.search(r"^error: wrong\.toml:\d+:\d+: ", done.stderr)
    assert re.search(expected, done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("module", "text", "expected"),
    [
        ("syntax", "import anabranch\n\ndef f(:\n", r"SyntaxError: .*syntax\.py, line 3"),
        (
            "imports",
            "import anabranch\nimport nowhere_at_all\n",
            r"No module named 'nowhere_at_all' \(.*imports\.py:2\)",
        ),
        (
            "abstract",
            "import anabranch\nclass Mine(anabranch.Scheduler):\n    pass\n",
            "`abstract:Mine` lacks the method decide",
        ),
        (
            "constructor",
            "import anabranch\nclass Mine(anabranch.Scheduler):\n    def __init__(self):\n        1 / 0\n"
            "    def decide(self, view, trigger):\n        return None\n",
            r"cannot be made: ZeroDivisionError: division by zero \(.*constructor\.py:4\)",
        ),
    ],
)
def test_a_module_that_does_not_work_is_input(
    module: str, text: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, module, text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=expected):
        anabranch.run(with_algorithm("scheduler", f"{module}:Mine"))


FAILS = {
    "raises": (
        "if self.ctx.now > 5.0:\n    raise ValueError('five seconds')\nreturn view.candidates[0]",
        r"`mine:Mine` raised ValueError at 5\.\d{6} s of simulated time: five seconds \(.*mine\.py:7\)",
    ),
    "returns": ("return 1", r"`mine:Mine` raised TypeError at .* decide\(\) returned 1; expected a subflow"),
    "full": (
        "full = [s for s in view.subflows if s not in view.candidates]\nreturn (full or view.candidates)[0]",
        r"`mine:Mine` at .* chose the subflow at position \d, which cannot take data",
    ),
    "nothing": (
        "from anabranch.algorithms import Send\nreturn Send(view.candidates[0], 0)",
        r"decide\(\) chose to send 0 bytes",
    ),
    "copies": (
        "from anabranch.algorithms import Duplicate\nreturn Duplicate(view.candidates[0], 2**64 - 2, 2)",
        r"decide\(\) duplicates bytes 18446744073709551614 to 18446744073709551615; in flight are \d+ to \d+",
    ),
}


@pytest.mark.parametrize("name", FAILS)
def test_a_fault_of_the_algorithm_ends_the_run(
    name: str, anabranch: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, expected = FAILS[name]
    write(tmp_path, "mine", scheduler_of(body))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(reading.load(with_algorithm("scheduler", "mine:Mine")).resolved, "utf-8")
    done = anabranch("run", "own.toml")
    assert done.returncode == 1
    assert re.search(expected, done.stderr)
    assert "panicked" not in done.stderr
    # The author's own traceback, and only where there was an exception of the author's.
    assert ("ValueError: five seconds" in done.stderr.split("error: ")[0]) == (name == "raises")
    assert not (tmp_path / "runs").exists()


def test_the_cause_is_the_authors_exception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "mine", scheduler_of("return view.nothing"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AlgorithmError) as caught:
        anabranch.run(with_algorithm("scheduler", "mine:Mine"))
    assert isinstance(caught.value.__cause__, AttributeError)


def test_what_it_emits_is_a_panel_and_a_table_without_recorded_events(silly: str, tmp_path: Path) -> None:
    scenario = with_algorithm("scheduler", silly)
    run = anabranch.run(scenario, seed=3)
    # The client has a scheduler, too, for its requests: figures are of the endpoint that sends the content.
    notes = anabranch.run(scenario, seed=3, events=True).events.filter(event="noted", source="session 0/server")
    for name in ("choice", "window.free", "window.srtt"):
        events = notes.filter(detail=name)
        found = run.noted(name).select("time_s", "value").rows()
        # Those of one instant are about several paths.
        assert sorted(found) == sorted(events.select("time_s", "value").rows())
    assert run.noted().height == notes.height
    with pytest.raises(InputError, match=r"nothing was emitted under `window`; there is `choice`, `window.free`"):
        run.noted("window")
    panels = {"choice", "window.free", "window.srtt"}
    assert {title.split(" (emitted")[0] for title in titles(run.plot())} & panels == panels
    timeline = timelines.of_session(run.recording, run.metrics, 0, title="t")
    assert {graph["title"] for graph in timeline.data["graphs"] if graph["kind"] == "note"} == panels
    # The same from a run folder, and a run without own algorithms has neither the file nor a panel.
    folder = run.save(tmp_path / "kept")
    (kept,) = runfolder.read(folder).recording.sessions
    for stored, series in zip(kept.notes, run.recording.sessions[0].notes, strict=True):
        assert (stored.name, stored.path) == (series.name, series.path)
        assert stored.values.tolist() == series.values.tolist()
    both = compare(
        [Column("own", "", kept), Column("plain", "", anabranch.run(NETWORK).recording.sessions[0])], title=""
    )
    assert {title.split(" (emitted")[0] for title in titles(both)} & panels == panels
    plain = anabranch.run(NETWORK)
    assert plain.noted().is_empty()
    plain.save(folder)
    assert not (folder / "notes.parquet").exists()


def titles(figure: Figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def test_a_kernel_that_serves_has_algorithms_of_its_own(silly: str, tmp_path: Path) -> None:
    from anabranch.live.run import run

    scenario = with_algorithm("scheduler", silly)
    with pytest.raises(InputError, match=r"scheduler = .*: the kernel serves with algorithms of its own"):
        run(scenario, folder=tmp_path, server="kernel")


def test_an_edited_module_is_another_run_with_another_key(
    silly: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the second in which the file was written, and of the same length: a compiled file would look current."""
    from anabranch.experiments import keys

    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    written_s = (tmp_path / "silly.py").stat().st_mtime_ns // 1_000_000_000
    scenario = with_algorithm("scheduler", silly)
    loaded = reading.load(scenario)
    before, key = anabranch.run(scenario).outcome.metrics_json, keys.of_scenario(loaded)
    assert [name for name, _ in sources.of_scenario(loaded)] == ["silly"]
    write(tmp_path, "silly", SILLY.replace("0.5", "0.1"))
    os.utime(tmp_path / "silly.py", ns=(0, written_s * 1_000_000_000))
    again = reading.load(scenario)
    assert keys.of_scenario(again) != key
    assert anabranch.run(scenario).outcome.metrics_json != before


def test_what_a_module_imports_from_its_folder_belongs_to_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "helping", "def pick(candidates):\n    return candidates[0]\n")
    write(tmp_path, "helped", "from helping import pick\n" + scheduler_of("return pick(view.candidates)"))
    monkeypatch.chdir(tmp_path)
    loaded = reading.load(with_algorithm("scheduler", "helped:Mine"))
    assert [name for name, _ in sources.of_scenario(loaded)] == ["helped", "helping"]


def test_a_sweep_uses_worker_processes(silly: str, anabranch: Run, tmp_path: Path) -> None:
    """The numbers are those of this process, and a run that fails is one of several."""
    write(tmp_path, "failing", scheduler_of("raise RuntimeError('no')"))
    (tmp_path / "base.toml").write_text(reading.load(NETWORK).resolved, "utf-8")
    plan = 'schema = 1\nquestion = "?"\nscenario = "base.toml"\nseeds = 1\n[vary]\n"transport.scheduler" = [{}]\n'
    (tmp_path / "good.toml").write_text(plan.format(f'"min-rtt", "{silly}"'), "utf-8")
    done = anabranch("sweep", "good.toml", "--jobs", 2)
    assert done.returncode == 0, done.stderr
    import polars as pl

    rows = pl.read_parquet(tmp_path / "runs" / "good" / "good.parquet")
    own = rows.filter(pl.col("transport.scheduler") == silly)
    here = session.simulate(with_algorithm("scheduler", silly)).metrics["sessions"][0]["goodput_bps"]
    assert own["goodput_bps"].to_list() == [here]
    (tmp_path / "bad.toml").write_text(plan.format('"min-rtt", "failing:Mine"'), "utf-8")
    done = anabranch("sweep", "bad.toml", "--jobs", 2)
    assert "`failing:Mine` raised RuntimeError" in done.stderr + done.stdout
    write(tmp_path, "killed", "import os\nimport signal\n" + scheduler_of("os.kill(os.getpid(), signal.SIGKILL)"))
    (tmp_path / "killed.toml").write_text(plan.format('"min-rtt", "killed:Mine"'), "utf-8")
    done = anabranch("sweep", "killed.toml", "--jobs", 1)
    assert "the process that made this run ended (by signal 9)" in done.stderr + done.stdout


# The places that are asked for, in their order.
FIRST_OF = """\
    import anabranch
    {imported}

    class FirstOf(anabranch.Scheduler):
        def __init__(self, order=(0,)):
            assert isinstance(order, list | tuple), type(order)
            self.order = order

        def decide(self, view, trigger):
            return next((c for at in self.order for c in view.candidates if c.position == at), None)
"""


def test_a_module_is_found_next_to_the_plan(anabranch: Run, answer: Callable[..., Any], tmp_path: Path) -> None:
    """A shipped scenario has no folder, and where the command runs another module has that name."""
    study, elsewhere = tmp_path / "study", tmp_path
    study.mkdir()
    write(study, "ordered", FIRST_OF.format(imported="import next_to_the_plan"))
    write(study, "next_to_the_plan", "NOTHING = None\n")
    write(elsewhere, "ordered", "raise RuntimeError('not this one')\n")
    (study / "plan.toml").write_text(
        'schema = 1\nquestion = "?"\nscenario = "bulk/two-paths"\nseeds = 1\n[set]\nduration = "2 s"\n'
        '[vary]\n"transport.scheduler" = ["ordered:FirstOf", { name = "ordered:FirstOf", order = [1, 0] }]\n',
        "utf-8",
    )
    done = anabranch("sweep", study / "plan.toml", "--strict")
    assert done.returncode == 0, done.stderr
    assert "2 runs made" in done.stdout
    # A change of what the module imports from its folder makes other runs.
    write(study, "next_to_the_plan", "NOTHING = ()\n")
    assert answer("plan", "show", study / "plan.toml")["missing"] == 2
    (study / "ordered.py").unlink()
    (elsewhere / "ordered.py").unlink()
    missing = anabranch("plan", "show", study / "plan.toml")
    assert missing.returncode == 2
    assert f"expected ordered.py in {study} or {elsewhere}" in missing.stderr


@pytest.mark.parametrize("order", [[0], [1, 0], []])
def test_an_option_may_be_a_list(order: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "ordered", FIRST_OF.format(imported=""))
    monkeypatch.chdir(tmp_path)
    chosen: dict[str, Any] = {"transport.scheduler": {"name": "ordered:FirstOf", "order": order}, "duration": "1 s"}
    run = anabranch.run("bulk/two-paths", set=chosen)
    sent = {subflow["path"]: subflow["segments_sent"] for subflow in run.metrics["sessions"][0]["subflows"]}
    assert len(order) == sum(number > 100 for number in sent.values()), sent
    # What stands in the run folder is the same scenario.
    assert reading.load(tomllib.loads(run.scenario)).resolved == run.scenario


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ('{ name = "round-robin", num_segments = [1, 2] }', "option `num_segments`: expected a number from 1 to 255"),
        ('{ name = "blest", formula = ["paper"] }', "option `formula`: expected one of"),
        ('{ name = "silly:Silly", share = [{ of = 1 }] }', "`share` is a table; expected a word, a number, true or"),
    ],
)
@pytest.mark.usefixtures("silly")
def test_a_list_where_none_belongs_is_refused(anabranch: Run, choice: str, expected: str) -> None:
    done = anabranch("run", "bulk/two-paths", "--set", f"transport.scheduler={choice}")
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_program_that_sweeps_without_a_guard_is_told_so(silly: str, tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(reading.load(NETWORK).resolved, "utf-8")
    program = f"""
import anabranch

vary = {{"transport.scheduler": ["{silly}"]}}
plan = {{"schema": 1, "question": "?", "scenario": "base.toml", "seeds": 2, "vary": vary}}
try:
    anabranch.sweep(plan, store="s", jobs=2)
except anabranch.InputError as error:
    print("said:", error)
"""
    (tmp_path / "program.py").write_text(program, "utf-8")
    command = [sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("said:") == 1
    assert 'below `if __name__ == "__main__":`' in done.stdout
    assert done.stderr == ""


def test_the_suite_passes_the_examples_and_finds_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("scheduler", "congestion_control", "path_policy"):
        assert _core.check_contract(kind, SAME[kind][1], directory=None, cases=10) is None
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "lazy", scheduler_of("return None"))
    fault = _core.check_contract("scheduler", "lazy:Mine", directory=None, cases=20)
    assert fault is not None
    body = "SEEN.append(1)\nreturn view.candidates[len(SEEN) % len(view.candidates)]"
    write(tmp_path, "remembers", "SEEN = []\n" + scheduler_of(body))
    fault = _core.check_contract("scheduler", "remembers:Mine", directory=None, cases=50)
    assert fault is not None
    decided = r"(send \d+ bytes( from offset \d+ again)? on subflow \d|wait)"
    assert re.search(f"two decisions, {decided} and {decided}; draw from", fault)


def test_a_breach_is_a_sentence_without_lines_of_the_test_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "idle", scheduler_of("return None"))
    fault = _core.check_contract("scheduler", "idle:Mine", directory=None, cases=200)
    assert fault is not None
    assert fault.startswith("it waits ")
    assert "\n" not in fault
    assert ".rs" not in fault
    assert capfd.readouterr() == ("", "")


def test_a_breach_has_paces_in_words_and_not_as_rust_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    control = (
        "import random\nimport anabranch\nclass Mine(anabranch.CongestionControl):\n"
        "    def on_ack(self, ack, window, siblings):\n        window.pacing_rate = random.uniform(1e5, 1e6)\n"
        "    def on_congestion(self, cause, window, siblings):\n        window.ssthresh = 2\n"
    )
    write(tmp_path, "paced", control)
    fault = _core.check_contract("congestion_control", "paced:Mine", directory=None, cases=20)
    assert fault is not None
    assert re.search(r"\(\S+, \S+, [\d.]+ kb/s\) and \(\S+, \S+, [\d.]+ kb/s\); draw from", fault), fault


def test_a_path_policy_that_asks_for_a_time_in_the_past_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(
        tmp_path,
        "restless",
        "import anabranch\nclass Mine(anabranch.PathPolicy):\n    def decide(self, subflows):\n        return None\n"
        "    def poll_timeout(self):\n        return 0.0\n",
    )
    fault = _core.check_contract("path_policy", "restless:Mine", directory=None, cases=10)
    assert fault is not None
    assert "poll_timeout() returned 0, which is not later than now" in fault
    with pytest.raises(AlgorithmError, match="not later than now"):
        anabranch.run("bulk/two-paths", set={"transport.path_policy": "restless:Mine", "duration": "1 s"})


def test_check_says_what_passes_and_what_fails(anabranch: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "CASES", 10)
    monkeypatch.setattr(checking, "SEEDS", (1,))
    done = anabranch("check", SAME["path_policy"][1])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("passes  ") == 3
    assert re.search(r"^pud +[\d.]+ Mb/s", done.stdout, re.MULTILINE)
    write(tmp_path, "lazy", scheduler_of("return None"))
    done = anabranch("check", "lazy:Mine", "--no-compare")
    assert done.returncode == 1
    assert "fails " in done.stdout
    assert "breaks 2 of 2 properties" in done.stderr
    done = anabranch("check", "lazy:Min")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean `lazy:Mine`" in done.stderr


def test_check_of_a_bitrate_rule_shows_bitrate_and_qoe(
    anabranch: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "SEEDS", (1,))
    write(
        tmp_path,
        "lowest",
        "import anabranch\nclass Lowest(anabranch.AbrRule):\n    def decide(self, view):\n        return 0\n",
    )
    done = anabranch("check", "lowest:Lowest")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    head = next(number for number, line in enumerate(lines) if "bitrate" in line and "QoE" in line)
    assert lines[head].split()[:2] == ["bitrate", "QoE"]
    rows = {line.split()[0]: re.findall(r"([\d.-]+) (\S+)", line) for line in lines[head + 1 :] if line}
    assert [unit for _, unit in rows["lowest:Lowest"][:3]] == ["Mb/s", "kb/s", "Mb/s"]
    (bitrate, _), (qoe, _), *_ = rows["lowest:Lowest"]
    # One representation alone: the QoE of a media segment is its bitrate, less what the start-up takes.
    assert float(qoe) < 1000.0 * float(bitrate)
    (others_bitrate, _), (others_qoe, _), *_ = rows["bola"]
    assert float(others_bitrate) > float(bitrate)
    assert float(others_qoe) > float(qoe)


def test_what_differs_from_process_to_process_is_found(
    anabranch: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "CASES", 2)
    write(
        tmp_path,
        "salted",
        # The same decisions again in this process, and others in the next one: two of 2^64 salts never agree.
        "import random\nSALT = random.getrandbits(64)\n"
        + scheduler_of("return random.Random(SALT + round(view.now * 1e9)).choice(list(view.candidates))"),
    )
    done = anabranch("check", "salted:Mine", "--no-compare")
    assert done.returncode == 1
    assert "another process differs" in done.stdout


def snippets() -> list[tuple[str | None, str, str]]:
    """The blocks of the page: the name of a file in front, the language, the content."""
    page = PAGE.read_text("utf-8")
    found = re.finditer(r"(?:`([\w.-]+)`:\n\n)?^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [(match[1], match[2], match[3]) for match in found]


@pytest.mark.slow
def test_every_snippet_of_the_guide_works(anabranch: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checking, "CASES", 10)
    monkeypatch.setattr(checking, "SEEDS", (1,))
    write(
        tmp_path,
        "my_rule",
        "import anabranch\nclass MyRule(anabranch.AbrRule):\n    def decide(self, view):\n        return 0\n",
    )
    ran = 0
    for file, language, content in snippets():
        if file is not None:
            (tmp_path / file).write_text(content, "utf-8")
        elif language == "sh":
            for line in content.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "anabranch"
                done = anabranch(*arguments)
                assert done.returncode == 0, f"{line}: {done.stderr}"
                ran += 1
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(content, {})
            assert ("print" not in content) or "<Run of bulk/two-paths" in printed.getvalue()
        elif "[transport]" in content:
            reading.load({**NETWORK, **tomllib.loads(content)})
        else:
            player = tomllib.loads(content)["player"]
            reading.load({**NETWORK, "session": [{**NETWORK["session"][0], "player": player}]})
    assert ran == 6
    assert (tmp_path / "cost.png").is_file()
    assert sum(len(content.splitlines()) for file, _, content in snippets() if file == "weighted.py") <= 20
