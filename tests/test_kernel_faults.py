"""Captures of the kernel's Multipath TCP, on both ends, tell faults that its links or hosts are known to have."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import require_live
from kernel_faults import PROGRAMS, campaign

pytestmark = [pytest.mark.live, pytest.mark.slow]

SEED = 651931
"""It was chosen after the last change of a rule of the account."""


def test_captures_of_the_kernel_name_nine_of_ten_faults_and_their_paths(tmp_path: Path) -> None:
    require_live(*PROGRAMS)
    found = list(campaign(tmp_path, SEED))
    assert len(found) >= 10
    wrong = [(one.kind.name, one.found.first_cause) for one in found if not one.cause_is_right]
    assert len(wrong) <= 0.1 * len(found), wrong
    assert [one.kind.name for one in found if not one.path_is_right] == []
