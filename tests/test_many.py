"""Runs side by side, sweeps, registries and traces in Python, and what notebooks show."""

from __future__ import annotations

import inspect
import re
import sys
import types
from pathlib import Path
from typing import Any, Literal, get_origin

import pytest

import anabranch
from anabranch import traces
from anabranch.runs import display

SHORT = {"duration": "3 s"}
PLAN: dict[str, Any] = {
    "schema": 1,
    "question": "Does blest help?",
    "scenario": "bulk/two-paths",
    "seeds": 2,
    "set": SHORT,
    "vary": {"transport.scheduler": ["min-rtt", "blest"]},
    "compare": {"metric": "goodput_bps", "better": "higher", "between": "transport.scheduler"},
}


@pytest.fixture(scope="module")
def pair() -> list[anabranch.Run]:
    names = ("min-rtt", "redundant")
    return [anabranch.run("bulk/two-paths", set={**SHORT, "transport.scheduler": name}) for name in names]


def test_runs_side_by_side_have_the_rows_of_the_command(pair: list[anabranch.Run], tmp_path: Path) -> None:
    compared = anabranch.compare(*pair)
    assert compared.names == ["scheduler=min-rtt", "scheduler=redundant"]
    goodputs = compared.table.row(0)
    assert goodputs[1] == "goodput, Mb/s"
    assert [float(text) * 1e6 for text in goodputs[2:]] == pytest.approx(
        [run.metrics.sessions[0].goodput_bps for run in pair], rel=0.01
    )
    assert compared.save(tmp_path).stat().st_size > 10_000
    folders = [run.save(tmp_path / str(number)) for number, run in enumerate(pair)]
    assert anabranch.compare(*folders).table.equals(compared.table)


def test_what_cannot_be_compared_is_refused(pair: list[anabranch.Run]) -> None:
    with pytest.raises(anabranch.InputError, match=r"1 run\(s\) given; expected two to 6"):
        anabranch.compare(pair[0])
    with pytest.raises(anabranch.InputError, match="no recording of session 3"):
        anabranch.compare(*pair, session=3)


def test_a_run_has_the_row_of_a_sweep(pair: list[anabranch.Run], tmp_path: Path) -> None:
    swept = anabranch.sweep(PLAN, store=tmp_path)
    assert (swept.made, swept.kept, swept.failed, swept.seeds) == (4, 0, 0, (1, 2))
    row = swept.sessions.filter(seed=1).row(0, named=True)
    ours = pair[0].sessions.row(0, named=True)
    assert ours.items() <= row.items()
    assert swept.comparisons.height == 2
    assert any("blest" in sentence for sentence in swept.sentences)
    assert "4 runs made" in repr(swept)
    assert "Does blest help?" in swept._repr_html_()
    assert anabranch.sweep(PLAN, store=tmp_path).kept == 4


def test_a_wrong_plan_names_the_key(tmp_path: Path) -> None:
    with pytest.raises(anabranch.InputError, match="did you mean `seeds`"):
        anabranch.sweep({**PLAN, "seed": 3}, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_registries_are_dictionaries_of_what_can_be_named() -> None:
    schedulers = anabranch.schedulers()
    assert "blest" in schedulers
    assert "IFIP" in schedulers["blest"].source
    assert repr(schedulers).splitlines()[0].startswith("min-rtt")
    assert "<table>" in schedulers._repr_html_()
    with pytest.raises(KeyError, match="did you mean `blest`"):
        schedulers["blst"]
    kinds = (
        *(anabranch.congestion_controls, anabranch.path_policies, anabranch.players, anabranch.abr_rules),
        anabranch.response_pacings,
        *(anabranch.queues, anabranch.loss_models, anabranch.ladders, anabranch.synthetic_rates),
        *(anabranch.reducers, anabranch.scenarios, anabranch.plans, anabranch.papers),
    )
    assert all(len(kind()) > 0 for kind in kinds)


def test_a_trace_is_written_and_read(tmp_path: Path) -> None:
    lte = traces.synthesize("lte", mean="12 Mb/s", duration="60 s", seed=1)
    assert (lte.duration_s, lte.rates.height) == (60.0, 60)
    assert lte.rates["rate_bps"].mean() == pytest.approx(lte.mean_bps)
    again = traces.read(lte.save(tmp_path / "lte.csv"))
    assert again.mean_bps == pytest.approx(lte.mean_bps, rel=1e-3)
    with pytest.raises(anabranch.InputError, match=r"nowhere\.csv"):
        traces.read(tmp_path / "nowhere.csv")


def test_a_notebook_shows_summary_paths_and_figure(pair: list[anabranch.Run]) -> None:
    page = pair[0]._repr_html_()
    assert "bulk/two-paths, seed 1" in page
    assert "mean RTT, ms" in page
    assert 'src="data:image/png;base64,' in page
    assert len(page) < 400_000
    assert "scheduler=redundant" in anabranch.compare(*pair)._repr_html_()


def test_a_notebook_shows_how_far_a_run_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shell = type("ZMQInteractiveShell", (), {})()
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setattr(display, "_BAR_AFTER_S", 0.0)
    monkeypatch.setattr(display, "_BAR_EVERY_S", 0.0)
    shown, end = display.bar("simulating")
    assert shown is not None
    shown(0.5)
    end()
    said = capsys.readouterr().err
    assert "simulating [###############...............]  50%" in said
    assert said.endswith(" \r"), "the line is taken away"
    monkeypatch.delitem(sys.modules, "IPython")
    assert display.bar("simulating")[0] is None


def test_every_public_name_is_documented() -> None:
    missing = []
    for name in anabranch.__all__:
        value = getattr(anabranch, name)
        if name == "__version__":
            continue
        members = inspect.getmembers(value) if inspect.isclass(value) else []
        own = [(f"{name}.{member}", what) for member, what in members if member in vars(value)]
        for called, what in [(name, value), *own]:
            last = called.rpartition(".")[2]
            # A list of texts, such as `Trigger`, is an alias of a type and has no docstring of its own.
            if get_origin(what) is Literal:
                continue
            if not last.startswith("_") and (callable(what) or isinstance(what, property)) and not inspect.getdoc(what):
                missing.append(called)
    assert missing == []


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"seeds": None}, "seeds"),
        ({"set": {"duration": None}}, "set.duration"),
        ({"engines": ["sim", None]}, "engines[1]"),
    ],
)
def test_nothing_as_a_value_of_a_plan_is_refused_with_its_key(change: dict[str, Any], place: str) -> None:
    plan = {"schema": 1, "question": "?", "scenario": "bulk/two-paths", "seeds": 2, **change}
    with pytest.raises(anabranch.InputError, match=re.escape(f"plan, key `{place}`: a value of type `NoneType`")):
        anabranch.sweep(plan)
