"""The types of scenarios and metrics: generated from the schemas, and of use to a type checker."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import tables
from anabranch.results import contract, metrics, record
from conftest import load_script

# Lines of use without a fault, and five in which something is misspelt or of the wrong kind.
CORRECT = """\
import anabranch
from anabranch.tables import BulkVideo, Link, Session

scenario = anabranch.Scenario(
    duration="10 s",
    transport={"scheduler": "blest"},
    link={"wifi": Link(rtt="30 ms", rate="3 Mb/s"), "lte": {"rtt": "60 ms", "rate": "2 Mb/s"}},
    session=[Session(video=BulkVideo(kind="bulk", size="2 MB"))],
)
run = anabranch.run(scenario, seed=2)
goodput: float = run.metrics.sessions[0].goodput_bps + run.metrics["sessions"][0]["goodput_bps"]
wide: int = run.sessions.width
"""
PLANTED = [
    ('link = Link(rrt="30 ms", rate="3 Mb/s")', "rrt"),
    ("stalls = run.metrics.sessions[0].stals", "stals"),
    ('late = anabranch.run("sticky/base", sed=3)', "sed"),
    ('other = anabranch.Scenario(duration="10 s", transport={"scheduler": "bleest"})', "scheduler"),
    ('lost = run.metrics["sesions"]', "__getitem__"),
]


def test_the_generated_modules_are_those_of_the_schemas() -> None:
    for path, content in load_script("python-types").modules().items():
        assert path.read_text(encoding="utf-8") == content, f"{path.name} is out of date: run `make docs`"


# Large libraries are not read: what is planted is about names of this package.
MYPY = """\
[mypy]
strict = True
python_version = 3.11
[mypy-anabranch.*]
ignore_errors = True
[mypy-polars.*,matplotlib.*,numpy.*,scipy.*,rich.*,typer.*,statsmodels.*]
follow_imports = skip
"""


def test_mypy_finds_planted_misuses_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "use.py"
    first = CORRECT.count("\n") + 1
    file.write_text(CORRECT + "".join(f"{line}\n" for line, _ in PLANTED), encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(MYPY, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "use.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    found = {int(line): said for line, said in re.findall(r"use\.py:(\d+): error: (.*)", done.stdout)}
    assert set(found) == set(range(first, first + len(PLANTED))), done.stdout
    for number, (_, named) in enumerate(PLANTED):
        assert named in found[first + number], done.stdout


@pytest.fixture(scope="module")
def typed_run() -> anabranch.Run:
    return anabranch.run("dash/ratio-1-1", set={"duration": "20 s", "session.0.video.duration": "8 s"})


def test_keys_and_attributes_of_metrics_are_the_same(typed_run: anabranch.Run) -> None:
    found = typed_run.metrics
    session = found.sessions[0]
    assert isinstance(session, contract.SessionMetrics)
    assert session["goodput_bps"] == session.goodput_bps > 0
    assert found.links[0].queue_delay_s.mean == found["links"][0]["queue_delay_s"]["mean"]
    assert session.media_segments is not None
    assert session.media_segments[0].throughput_bps > 0
    assert session.subflows[0].path == session["subflows"][0]["path"]


def test_every_key_of_a_run_is_typed_and_every_typed_one_is_there(typed_run: anabranch.Run) -> None:
    def check(kind: type[record.Record], table: dict[str, Any]) -> None:
        absent = set(kind.__annotations__) - set(table)
        assert not set(table) - set(kind.__annotations__), kind
        assert absent <= {"live"}, kind
        for key, inner in contract.NESTED.get(kind, {}).items():
            value = table.get(key)
            for each in [value] if isinstance(value, dict) else value or []:
                assert type(each) is inner
                check(inner, each)

    check(contract.Metrics, typed_run.metrics)


def test_a_key_that_a_session_does_not_have_is_none_as_an_attribute() -> None:
    bulk = anabranch.run("bulk/two-paths", set={"duration": "2 s"}).metrics.sessions[0]
    assert "qoe_log" not in bulk
    assert bulk.qoe_log is None
    with pytest.raises(AttributeError, match="SessionMetrics has no `goodputs_bps`; did you mean `goodput_bps`"):
        bulk.goodputs_bps  # type: ignore[attr-defined]  # noqa: B018


def test_metrics_can_be_copied(typed_run: anabranch.Run) -> None:
    again = pickle.loads(pickle.dumps(typed_run.metrics))
    assert again == typed_run.metrics
    assert type(again.sessions[0]) is contract.SessionMetrics


def test_the_views_of_a_session_have_keys_of_the_contract() -> None:
    keys = contract.SessionMetrics.__annotations__
    assert metrics.Viewer.__annotations__.keys() | metrics.Quality.__annotations__.keys() <= keys.keys()


def test_a_scenario_is_the_dictionary_of_its_keys() -> None:
    scenario = anabranch.Scenario(
        duration="2 s",
        link={"wifi": tables.Link(rtt="30 ms", rate="3 Mb/s")},
        session=[{"video": {"kind": "bulk", "size": "100 kB"}}],
    )
    assert scenario == {
        "schema": 1,
        "duration": "2 s",
        "link": {"wifi": {"rtt": "30 ms", "rate": "3 Mb/s"}},
        "session": [{"video": {"kind": "bulk", "size": "100 kB"}}],
    }
    assert repr(scenario) == "<Scenario of 2 s: links wifi; 1 session>"
    assert scenario.check() is scenario
    assert 'rate = "3 Mb/s"' in scenario.text
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    assert anabranch.run(scenario).metrics.ended == "finished"


def test_a_wrong_scenario_names_the_key() -> None:
    scenario = anabranch.Scenario(duration="2 s", link={"wifi": {"rate": "3 Mb"}})
    with pytest.raises(anabranch.InputError, match=r"link\.wifi\.rate"):
        scenario.check()


def test_a_shipped_scenario_can_be_changed_and_run() -> None:
    scenario = anabranch.Scenario.load("bulk/two-paths", set={"duration": "2 s"})
    scenario["transport"]["scheduler"] = "blest"
    run = anabranch.run(scenario)
    assert run.metrics == anabranch.run(
        "bulk/two-paths", set={"duration": "2 s", "transport.scheduler": "blest"}
    ).metrics | {"scenario": "scenario"}
