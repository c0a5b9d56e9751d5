"""The paper `viewers`: its network of many viewers, and what its tables make of runs."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from anabranch.experiments import paper
from anabranch.experiments.study import Study


@pytest.fixture(scope="module")
def criteria() -> ModuleType:
    """Its module."""
    paper.load("viewers")
    return sys.modules["criteria of viewers"]


def viewer(seed: int, session: int, bitrate_mbps: float, **columns: Any) -> dict[str, Any]:
    """A row of a table of sessions."""
    seen = {"switches": 1, "stalls": 0, "stall_s": 0.0, "startup_s": 1.0, "fairness.jain_mean_bitrate": 0.9}
    bitrates = {"mean_bitrate_bps": bitrate_mbps * 1e6, "qoe_linear_per_segment": bitrate_mbps * 1e3}
    return {"seed": seed, "session": session, **seen, **bitrates, **columns}


def test_a_crowd_has_as_much_for_each_as_four_viewers_and_begins_within_the_same_time(criteria: ModuleType) -> None:
    assert criteria.crowd({"viewers": "4"}) == {
        "session.0.count": 4,
        "session.0.stagger": "7000 ms",
        "link.wifi.rate": "8 Mb/s",
        "link.wifi.queue": "100 kB",
        "link.lte.rate": "4 Mb/s",
        "link.lte.queue": "100 kB",
    }
    assert criteria.crowd({"viewers": "100"})["session.0.stagger"] == "280 ms"


def test_a_run_with_a_viewer_who_has_no_number_has_none(criteria: ModuleType) -> None:
    rows = [viewer(11, 0, 4.0, variant="levels"), viewer(11, 1, 4.0, variant="levels", startup_s=None)]
    of = criteria.case("cmcd", variant="levels")
    assert np.isnan(criteria.by_seed(Study({"cmcd": rows}), of, "startup_s")).all()


def test_a_run_counts_with_the_mean_over_its_viewers(criteria: ModuleType) -> None:
    rows = [viewer(seed, session, seed + session) for seed in (11, 12) for session in (0, 1)]
    study = Study({"cmcd": [row | {"variant": "levels"} for row in rows]})
    of = criteria.case("cmcd", variant="levels")
    assert criteria.by_seed(study, of, "mean_bitrate_bps").tolist() == [11.5, 12.5]
    assert criteria.by_seed(study, of, "stall_s").tolist() == [0.0, 0.0]


def test_the_best_limit_is_that_of_the_highest_qoe(criteria: ModuleType) -> None:
    names = {"LIA": 3.0, "limit 1.3 Mb/s": 1.2, "limit 3.1 Mb/s": 2.7, "limit 3.6 Mb/s": 2.6}
    rows = [viewer(11, 0, qoe, scenario="viewers/four", variant=name) for name, qoe in names.items()]
    assert criteria.best_limit(Study({"viewers": rows}), "viewers/four") == "limit 3.1 Mb/s"


def test_what_is_left_for_others_adds_up_and_has_the_index_that_was_demanded(criteria: ModuleType) -> None:
    labels = {"server.response_pacing": "off", "scenario": "viewers/unlike"}
    study = Study({"others": [viewer(11, session, 4.0, **labels) for session in range(4)]})
    _, (kept, equal) = criteria.dilemma.fill(study)
    assert kept[1:3] == ["3.92", "2 %"]
    assert equal[4] == "0.980"
    for row in (kept, equal):
        own, other = float(row[1]), float(row[3])
        assert own + 3 * other == pytest.approx(criteria.ARRIVES, abs=0.03)
        jain = (own + 3 * other) ** 2 / (4 * (own**2 + 3 * other**2))
        assert float(row[4]) == pytest.approx(jain, abs=0.002)
