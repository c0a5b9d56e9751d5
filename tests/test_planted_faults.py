"""`anabranch explain` names faults that were planted at random, as the page says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import module_of_paper


def test_the_kept_runs_are_those_of_every_kind() -> None:
    criteria = module_of_paper("explain", "criteria")
    faults, kernel = module_of_paper("explain", "faults"), module_of_paper("explain", "kernel")
    assert (len(faults.KINDS), len(faults.TWO)) == (criteria.KINDS, criteria.PAIRS)
    assert len(kernel.KINDS) == criteria.KERNEL_KINDS


@pytest.mark.slow
def test_most_planted_faults_are_the_first_cause() -> None:
    faults = module_of_paper("explain", "faults")
    each = [(kind, number) for kind in range(len(faults.KINDS)) for number in range(3)]
    with ThreadPoolExecutor() as threads:
        rows = list(threads.map(lambda one: faults.with_one(*one, seed=1), each))
    found = [row for row in rows if row["planted"]]
    assert len(found) > 100
    assert sum(row["account_is_right"] for row in found) >= 0.9 * len(found)
    assert sum(row["what_if_is_right"] for row in found) >= 0.95 * len(found)
    assert sum(row["path_is_right"] for row in found) >= 0.95 * len(found)
    assert sum(row["capture_is_right"] for row in found) >= 0.9 * len(found)
    assert sum(row["capture_path_is_right"] for row in found) >= 0.95 * len(found)
    assert max(row["unexplained"] for row in found) <= 0.02
