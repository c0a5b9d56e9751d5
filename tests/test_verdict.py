"""Which cause of an account is named first: one that matters, outages as wholes, and remedies that return something."""

from __future__ import annotations

from anabranch.runs import verdict
from anabranch.runs.parts import LinkTime, path_of
from anabranch.runs.trials import Trial, WhatIf


def parts(**shares: float) -> list[LinkTime]:
    """The parts of a path; underscores of names are hyphens."""
    found = [LinkTime("wifi", cause.replace("_", "-"), None, 0.0, share) for cause, share in shares.items()]
    return sorted(found, key=lambda part: -part.share)


def tried(*gains: tuple[str, float, bool]) -> WhatIf:
    """Remedies of a run whose stalls take 10 s: the cause, what is returned, and whether another part replaces one."""
    trials = tuple(Trial(cause, cause, {}, 10.0 - gain, gain, replaces) for cause, gain, replaces in gains)
    return WhatIf("stall_s", True, 10.0, trials)


def test_a_cause_that_runs_without_a_fault_have_matters_only_above_what_they_have() -> None:
    assert verdict.first_cause(parts(last_bytes=0.079, start_up=0.059), None) is None
    assert verdict.first_cause(parts(last_bytes=0.081, start_up=0.059), None) == "last-bytes"
    assert verdict.first_cause(parts(last_bytes=0.079, start_up=0.061), None) == "start-up"
    # Windows decay in pauses, however short the round trips of requests are.
    assert verdict.first_cause(parts(idle_decay=0.059, request=0.02), None) is None
    assert verdict.first_cause(parts(idle_decay=0.061, request=0.02), None) == "idle-decay"
    # Each of many short downloads has its last bytes.
    assert verdict.first_cause(parts(last_bytes=0.1, request=0.02), None) is None


def test_a_small_part_of_another_cause_is_named_before_a_larger_usual_one() -> None:
    assert verdict.first_cause(parts(last_bytes=0.05, loss_random=0.021), None) == "loss-random"
    assert verdict.first_cause(parts(last_bytes=0.05, loss_random=0.019), None) is None


def test_what_an_outage_loses_belongs_to_the_outage() -> None:
    assert verdict.first_cause(parts(shared=0.3, link_down=0.2, loss_outage=0.15), None) == "link-down"
    assert verdict.first_cause(parts(shared=0.1, loss_outage=0.15), None) == "loss-outage"


def test_what_is_not_explained_is_no_cause() -> None:
    assert verdict.first_cause(parts(unexplained=0.5, shared=0.05), None) == "shared"
    assert verdict.first_cause([], None) is None


def test_a_remedy_that_returns_something_makes_its_cause_matter() -> None:
    lost = parts(shared=0.2, loss_random=0.015)
    assert verdict.first_cause(lost, tried(("loss-random", 6.0, False), ("shared", 0.1, False))) == "loss-random"
    assert verdict.first_cause(parts(loss_random=0.015), tried(("loss-random", 0.4, False))) is None
    # Faster links return something in every run.
    assert verdict.first_cause(parts(loss_random=0.015), tried(("useful", 6.0, False))) is None


def test_another_scheduler_counts_half_against_the_cause_that_it_was_tried_for() -> None:
    lost = parts(last_bytes=0.3, shared=0.25)
    gains = (("last-bytes", 8.0, True), ("shared", 6.0, False))
    assert verdict.first_cause(lost, tried(*gains)) == "shared"


def test_captures_name_a_cause_only_where_it_has_more_than_without_a_fault() -> None:
    first = verdict.first_of_capture
    assert first(parts(last_bytes=0.07, slower_or_shared=0.02, application=0.01), 0.0, 0.0) is None
    assert first(parts(last_bytes=0.09, application=0.021), 0.0, 0.0) == "last-bytes"
    # Many short responses have last bytes and short pauses without a fault.
    assert first(parts(last_bytes=0.19, idle_decay=0.03), 0.05, 0.0) is None
    assert first(parts(last_bytes=0.19, idle_decay=0.06), 0.05, 0.0) == "idle-decay"
    assert first(parts(link_down=0.05, loss_outage=0.1, loss_random=0.12), 0.0, 0.0) == "link-down"


def test_requests_that_take_long_are_named_although_a_capture_has_no_part_for_them() -> None:
    assert verdict.first_of_capture(parts(last_bytes=0.5), 0.24, 0.0) == "last-bytes"
    assert verdict.first_of_capture(parts(last_bytes=0.5), 0.5, 0.0) == "request"
    assert verdict.first_of_capture([], 0.24, 0.0) is None


def test_a_receive_window_that_is_always_full_hides_what_paths_could_carry() -> None:
    assert verdict.first_of_capture(parts(receive_window=0.004), 0.0, 0.4) is None
    assert verdict.first_of_capture(parts(receive_window=0.004), 0.0, 0.9) == "receive-window"


def test_the_path_to_look_at_is_the_one_that_others_wait_for() -> None:
    waiting = [
        LinkTime("wifi", "last-bytes", "lte", 0.0, 0.3),
        LinkTime("wifi", "last-bytes", "wifi", 0.0, 0.2),
        LinkTime("lte", "last-bytes", None, 0.0, 0.1),
    ]
    assert path_of(waiting, "last-bytes") == "lte"
    assert path_of(waiting[1:], "last-bytes") == "wifi"
    assert path_of(waiting, "loss-random") is None
    # Another connection is no path.
    assert path_of([LinkTime("wifi", "shared", "traffic-1", 0.0, 0.3)], "shared") == "wifi"
    # What an outage lost is on its path.
    cut = [LinkTime("lte", "link-down", None, 0.0, 0.2), LinkTime("wifi", "loss-outage", None, 0.0, 0.3)]
    assert path_of(cut, "link-down") == "wifi"
