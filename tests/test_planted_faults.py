"""`anabranch explain` names faults that were planted at random."""

from __future__ import annotations

import pytest

from planted_faults import campaign


@pytest.mark.slow
def test_most_planted_faults_are_the_first_cause() -> None:
    found = list(campaign(1))
    assert len(found) > 100
    # Seed 1 gave all of 114 in November 2026, and all 63 paths.
    assert sum(one.first_is_right for one in found) >= 0.9 * len(found)
    assert sum(one.tried_is_right for one in found) >= 0.95 * len(found)
    assert sum(one.path_is_right for one in found) >= 0.95 * len(found)
    assert max(one.explanation.causes.get("unexplained", 0.0) for one in found) <= 0.02
