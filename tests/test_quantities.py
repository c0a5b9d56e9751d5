"""Names of metrics and keys: words and units that tell them apart."""

from __future__ import annotations

from typing import Any

import pytest

import anabranch
from anabranch.results import columns
from anabranch.wording import quantities


@pytest.mark.parametrize(
    ("key", "labelled", "scale"),
    [
        ("goodput_bps", "goodput (Mb/s)", 1e-6),
        ("stall_s", "stall time (s)", 1.0),
        ("reorder_delay_s.p95", "reordering delay, 95th percentile (ms)", 1e3),
        ("subflows.wifi.goodput_bps", "goodput of wifi (Mb/s)", 1e-6),
        ("links.lte.down.queue_delay_s.mean", "mean queueing delay of lte, down (ms)", 1e3),
        ("fairness.jain_goodput", "Jain's index of goodput", 1.0),
        ("traffic.0.goodput_bps", "goodput of cross traffic 0 (Mb/s)", 1e-6),
        ("qoe_linear_per_segment", "linear QoE per media segment (kb/s)", 1.0),
        ("bytes", "data (MB)", 1e-6),
        ("my_own_time_s", "my own time (s)", 1.0),
    ],
)
def test_a_metric_has_words_and_a_unit(key: str, labelled: str, scale: float) -> None:
    found = quantities.of_metric(key)
    assert (found.labelled, found.scale) == (labelled, scale)


def test_metrics_of_a_run_have_names_that_tell_them_apart() -> None:
    run = anabranch.run("dash/ratio-1-5", set={"duration": "20 s"}, events=False)
    (row,) = columns.sessions(run.metrics)
    numbers = [key for key, value in row.items() if isinstance(value, int | float) and not isinstance(value, bool)]
    assert len(numbers) > 60
    names: dict[str, Any] = {}
    for key in numbers:
        quantity = quantities.of_metric(key)
        assert "_" not in quantity.name, key
        assert quantity.labelled not in names, f"{key} and {names[quantity.labelled]}"
        names[quantity.labelled] = key


def test_keys_that_words_cannot_tell_apart_keep_what_does() -> None:
    names = quantities.of_keys(["transport.scheduler", "link.wifi.rtt", "link.lte.rtt", "session.0.player.kind"])
    assert list(names.values()) == ["scheduler", "round trip of wifi", "round trip of lte", "player"]
    assert list(quantities.of_keys(["session.0.start", "session.1.start"]).values()) == ["0.start", "1.start"]
